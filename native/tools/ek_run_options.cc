#include "tools/ek_run_options.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "core/cpu_features.h"

namespace edgekit {
namespace {

Status usage_error(const std::string& message) { return {StatusCode::kInvalidInput, message}; }

Status parse_number(std::string_view option, std::string_view text, int least, int* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc() && end == text.data() + text.size() && *value >= least) return Status::ok();
  return usage_error(std::string(option) + ": not a number from " + std::to_string(least) + " (got '" +
                     std::string(text) + "')");
}

Status set_option(std::string_view option, const std::string& value, EkRunOptions* options) {
  int number = 0;
  if (option == "--plan") {
    EK_RETURN_IF_ERROR(parse_number(option, value, 0, &number));
    options->plan = static_cast<size_t>(number);
  } else if (option == "--isa") {
    const Result<Isa> isa = parse_isa(value);
    if (!isa.is_ok()) return isa.status();
    options->isa = isa.value();
  } else if (option == "--threads") {
    return parse_number(option, value, 0, &options->threads);
  } else if (option == "--repeat") {
    return parse_number(option, value, 1, &options->repeat);
  } else if (option == "--output-dir") {
    options->output_dir = value;
  } else if (option == "--input") {
    const size_t equals = value.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return usage_error("--input: expected NAME=FILE (got '" + value + "')");
    if (!options->inputs.emplace(value.substr(0, equals), value.substr(equals + 1)).second) {
      return usage_error("--input: given twice for '" + value.substr(0, equals) + "'");
    }
  } else {
    return usage_error("unknown option " + std::string(option));
  }
  return Status::ok();
}

}  // namespace

Result<EkRunOptions> parse_ek_run(int argument_count, char** arguments) {
  EkRunOptions options;
  for (int i = 1; i < argument_count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--layers") {
      options.layers = true;
    } else if (argument.compare(0, 2, "--") != 0) {
      if (!options.program.empty()) return usage_error("more than one program (got '" + argument + "')");
      options.program = argument;
    } else if (i + 1 == argument_count) {
      return usage_error(argument + ": unknown option, or its value is missing");
    } else {
      EK_RETURN_IF_ERROR(set_option(argument, arguments[++i], &options));
    }
  }
  if (options.program.empty()) return usage_error("no program given");
  return options;
}

}  // namespace edgekit

#include "tools/json_line.h"

#include <cstdio>

namespace edgekit {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

JsonObject& JsonObject::number(std::string_view key, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return raw(key, text);
}

JsonObject& JsonObject::raw(std::string_view key, std::string_view json) {
  if (body_.size() > 1) body_ += ", ";
  body_ += json_string(key) + ": " + std::string(json);
  return *this;
}

JsonArray& JsonArray::add(std::string_view json) {
  if (body_.size() > 1) body_ += ", ";
  body_ += json;
  return *this;
}

}  // namespace edgekit

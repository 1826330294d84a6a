// Writes one line of JSON: what the tools report on standard output.
#ifndef EDGEKIT_TOOLS_JSON_LINE_H_
#define EDGEKIT_TOOLS_JSON_LINE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace edgekit {

// text as a JSON string, quotes included.
std::string json_string(std::string_view text);

// Builds an object, key by key.
class JsonObject {
 public:
  JsonObject& text(std::string_view key, std::string_view value) { return raw(key, json_string(value)); }
  JsonObject& number(std::string_view key, double value);
  JsonObject& integer(std::string_view key, int64_t value) { return raw(key, std::to_string(value)); }
  JsonObject& raw(std::string_view key, std::string_view json);  // a value that is JSON already
  std::string str() const { return body_ + "}"; }

 private:
  std::string body_ = "{";
};

// Builds an array of values that are JSON already.
class JsonArray {
 public:
  JsonArray& add(std::string_view json);
  std::string str() const { return body_ + "]"; }

 private:
  std::string body_ = "[";
};

}  // namespace edgekit

#endif  // EDGEKIT_TOOLS_JSON_LINE_H_

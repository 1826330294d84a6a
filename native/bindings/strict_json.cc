#include "bindings/strict_json.h"

#include <cmath>
#include <cstdint>
#include <string>

namespace py = pybind11;

namespace edgekit {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxNumberBytes = 100;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  py::object document() {
    py::object value = parse_value(0);
    skip_space();
    if (at_ != text_.size()) fail("more follows the value");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw py::value_error(problem + " at byte " + std::to_string(at_));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  py::object parse_value(int depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    skip_space();
    switch (peek()) {
      case '{':
        return parse_object(depth);
      case '[':
        return parse_array(depth);
      case '"':
        return parse_string();
      case 't':
        return parse_word("true", py::bool_(true));
      case 'f':
        return parse_word("false", py::bool_(false));
      case 'n':
        return parse_word("null", py::none());
      default:
        return parse_number();
    }
  }

  py::object parse_word(std::string_view word, py::object value) {
    if (text_.substr(at_, word.size()) != word) fail("not a value");
    at_ += word.size();
    return value;
  }

  py::object parse_object(int depth) {
    py::dict table;
    ++at_;
    skip_space();
    if (take('}')) return std::move(table);
    do {
      skip_space();
      if (peek() != '"') fail("a key is missing");
      const size_t start = at_;
      const py::str key = parse_string();
      if (table.contains(key)) {
        at_ = start;
        fail("key is there twice");
      }
      skip_space();
      if (!take(':')) fail("':' is missing");
      table[key] = parse_value(depth + 1);
      skip_space();
    } while (take(','));
    if (!take('}')) fail("'}' is missing");
    return std::move(table);
  }

  py::object parse_array(int depth) {
    py::list items;
    ++at_;
    skip_space();
    if (take(']')) return std::move(items);
    do {
      items.append(parse_value(depth + 1));
      skip_space();
    } while (take(','));
    if (!take(']')) fail("']' is missing");
    return std::move(items);
  }

  void take_digits() {
    if (!is_digit(peek())) fail("not a value");
    while (is_digit(peek())) ++at_;
  }

  py::object parse_number() {
    const size_t start = at_;
    take('-');
    if (!take('0')) take_digits();
    bool whole = true;
    if (take('.')) {
      whole = false;
      take_digits();
    }
    if (take('e') || take('E')) {
      whole = false;
      if (!take('+')) take('-');
      take_digits();
    }
    const std::string text(text_.substr(start, at_ - start));
    if (text.size() > kMaxNumberBytes) fail("number is too long");
    PyObject* number = whole ? PyLong_FromString(text.c_str(), nullptr, 10) : PyFloat_FromDouble(parse_double(text));
    if (number == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(number);
  }

  double parse_double(const std::string& text) const {
    const double value = PyOS_string_to_double(text.c_str(), nullptr, nullptr);  // never the locale's decimal comma
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    if (!std::isfinite(value)) fail("number is not finite");
    return value;
  }

  py::str parse_string() {
    std::string bytes;
    ++at_;
    while (true) {
      const size_t start = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<uint8_t>(text_[at_]) >= 0x20) {
        ++at_;
      }
      bytes.append(text_.substr(start, at_ - start));
      if (take('"')) break;
      if (!take('\\')) fail("text does not end, or holds a control character");
      append_escape(&bytes);
    }
    PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<py::ssize_t>(bytes.size()), nullptr);
    if (text == nullptr) {
      PyErr_Clear();
      fail("text is not UTF-8");
    }
    return py::reinterpret_steal<py::str>(text);
  }

  void append_escape(std::string* bytes) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeans = "\"\\/\b\f\n\r\t";
    if (take('u')) return append_code_point(parse_code_point(), bytes);
    const size_t index = kNames.find(peek());
    if (at_ >= text_.size() || index == std::string_view::npos) fail("unknown escape");
    *bytes += kMeans[index];
    ++at_;
  }

  uint32_t parse_hex() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("malformed escape");
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    return value;
  }

  uint32_t parse_code_point() {
    const uint32_t high = parse_hex();
    if (high < 0xd800 || high > 0xdfff) return high;
    if (high > 0xdbff || !take('\\') || !take('u')) fail("lone surrogate");
    const uint32_t low = parse_hex();
    if (low < 0xdc00 || low > 0xdfff) fail("lone surrogate");
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  }

  static void append_code_point(uint32_t code, std::string* bytes) {
    const auto tail = [&](int shift) { *bytes += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80) {
      *bytes += static_cast<char>(code);
    } else if (code < 0x800) {
      *bytes += static_cast<char>(0xc0 | code >> 6);
      tail(0);
    } else if (code < 0x10000) {
      *bytes += static_cast<char>(0xe0 | code >> 12);
      tail(6);
      tail(0);
    } else {
      *bytes += static_cast<char>(0xf0 | code >> 18);
      tail(12);
      tail(6);
      tail(0);
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

py::object parse_strict_json(std::string_view text) { return Parser(text).document(); }

}  // namespace edgekit

// A tiny test frame: EK_TEST(name) { ... } registers a test, EK_CHECK* record a failure with file and line and go on.
// Each *_test.cc is one executable; its arguments are substrings of the tests to run (none: all). A test that the CPU
// cannot run says so with EK_SKIP.
#ifndef EDGEKIT_TESTS_CHECK_H_
#define EDGEKIT_TESTS_CHECK_H_

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace edgekit::test {

struct Case {
  const char* name;
  void (*body)();
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Registration {
  Registration(const char* name, void (*body)()) { cases().push_back({name, body}); }
};

// Prints the first failures in full and counts the rest.
inline void fail(const char* file, int line, const std::string& what) {
  if (++failures() <= 20) std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
}

inline int run_all(int argument_count, char** arguments) {
  int ran = 0;
  for (const Case& test : cases()) {
    bool chosen = argument_count <= 1;
    for (int i = 1; i < argument_count; ++i) chosen |= std::strstr(test.name, arguments[i]) != nullptr;
    if (!chosen) continue;
    const int before = failures();
    test.body();
    ++ran;
    std::printf("%s %s\n", failures() == before ? "ok  " : "FAIL", test.name);
    std::fflush(stdout);
  }
  std::printf("%d tests, %d failures\n", ran, failures());
  return failures() == 0 && ran > 0 ? 0 : 1;
}

}  // namespace edgekit::test

#define EK_TEST(test_name)                                                                                 \
  static void ek_test_##test_name();                                                                       \
  static const ::edgekit::test::Registration ek_registration_##test_name(#test_name, ek_test_##test_name); \
  static void ek_test_##test_name()

#define EK_CHECK(condition)                                                               \
  do {                                                                                    \
    if (!(condition)) ::edgekit::test::fail(__FILE__, __LINE__, "not true: " #condition); \
  } while (false)

#define EK_CHECK_MSG(condition, message)                                  \
  do {                                                                    \
    if (!(condition)) ::edgekit::test::fail(__FILE__, __LINE__, message); \
  } while (false)

#define EK_SKIP(reason)                \
  do {                                 \
    std::printf("skip: %s\n", reason); \
    return;                            \
  } while (false)

#endif  // EDGEKIT_TESTS_CHECK_H_

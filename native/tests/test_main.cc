#include "tests/check.h"

int main(int argument_count, char** arguments) { return edgekit::test::run_all(argument_count, arguments); }

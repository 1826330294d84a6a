// Counts what the process takes from the heap, by standing in for malloc itself.
#ifndef EDGEKIT_TESTS_ALLOCATION_COUNT_H_
#define EDGEKIT_TESTS_ALLOCATION_COUNT_H_

namespace edgekit::test {

class AllocationCount {
 public:
  AllocationCount();
  // Allocations of all threads since then: malloc and everything that ends there, new included.
  long now() const;

 private:
  long before_;
};

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_ALLOCATION_COUNT_H_

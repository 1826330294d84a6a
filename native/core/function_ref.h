// FunctionRef: a non-owning reference to a callable, two pointers wide. It lets a loop that many callers share be
// compiled once rather than once a caller, at the price of an indirect call; use it where one call does real work.
#ifndef EDGEKIT_CORE_FUNCTION_REF_H_
#define EDGEKIT_CORE_FUNCTION_REF_H_

#include <memory>
#include <type_traits>
#include <utility>

namespace edgekit {

template <typename Signature>
class FunctionRef;

// The callable must outlive the reference, as a temporary argument outlives the call it is made for.
template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F, typename = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F&& callable)  // NOLINT(google-explicit-constructor)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace edgekit

#endif  // EDGEKIT_CORE_FUNCTION_REF_H_

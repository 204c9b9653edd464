#pragma once

namespace stagecraft {

// A vector of some elements of a and b; the elements of b are numbered after those of a.
template <int... kElements, class V>
[[gnu::always_inline]] static inline auto shuffled(V a, V b) {
#if defined(__clang__) || __GNUC__ >= 12
  return __builtin_shufflevector(a, b, kElements...);
#else
  constexpr int n = sizeof(V) / sizeof(a[0]);
  typedef __typeof__(+a[0]) Some __attribute__((vector_size(sizeof...(kElements) * sizeof(a[0]))));
  return Some{(kElements < n ? a[kElements % n] : b[kElements % n])...};
#endif
}

}  // namespace stagecraft

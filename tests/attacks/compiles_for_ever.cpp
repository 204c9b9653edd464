// Attack: endless templates.
// Ends as: uncompiled
#include "attack.h"

template <int depth, unsigned long long place>
struct Tree {
  static constexpr unsigned long long value =
      Tree<depth - 1, 2 * place>::value + Tree<depth - 1, 2 * place + 1>::value;
};
template <unsigned long long place>
struct Tree<0, place> {
  static constexpr unsigned long long value = place;
};

static void attack() { printf("%llu", Tree<60, 1>::value); }

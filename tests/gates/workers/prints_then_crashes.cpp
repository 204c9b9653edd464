// A silu with debug output, which crashes in the middle of a line.
#include "operators/silu.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "tensor/print.h"

namespace stagecraft {

void silu(std::span<const float> x, std::span<float>) {
  print(x.first(1), "x");
  std::cout << "size " << x.size() << '\n';
  std::printf("before the loop");
  std::abort();
}

}  // namespace stagecraft

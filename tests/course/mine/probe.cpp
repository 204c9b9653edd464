// Calls inner seven times: twice in outer and five times in a thread of its own. Throws three
// times. With an argument it then crashes.
#include <array>
#include <exception>
#include <thread>

#include "tests/course/mine/probed.h"

int main(int argc, char**) {
  using namespace stagecraft;
  const std::array<float, 4> numbers = {1.0f, 2.0f, 3.0f, 4.0f};
  const MatrixView<const float> x(numbers.data(), 2, 2);
  std::thread other([&] {
    for (int i = 0; i < 5; ++i) inner(x);
  });
  for (int i = 0; i < 3; ++i) {
    try {
      throws();
    } catch (const std::exception&) {
      continue;
    }
  }
  outer(x);
  other.join();
  if (argc > 1) crashes();
  return 0;
}

// The functions of probe that are counted, written as by a student, with helpers and views of ours.
#include "tests/course/mine/probed.h"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace stagecraft {
namespace {

float helper(float x) { return x + 1.0f; }

}  // namespace

// Clang does not count what it has inlined.
[[gnu::noinline]] float inner(MatrixView<const float> x) {
  float sum = 0.0f;
  for (std::size_t r = 0; r < x.rows(); ++r) sum += helper(x(r, 0));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return sum;
}

float outer(MatrixView<const float> x) {
  const auto add = [&](float sum) { return sum + inner(x); };
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return add(add(0.0f));
}

void unused() {}

void throws() { throw std::runtime_error("as it does"); }

void crashes() { std::abort(); }

}  // namespace stagecraft

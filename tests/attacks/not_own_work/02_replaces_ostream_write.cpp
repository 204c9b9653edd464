// Attack: writes out of bounds, and replaces the method through which the worker reports it.
// Stage: 2
// Refused for: std::ostream::write
// Would earn: 20
#include <cmath>
#include <ostream>
#include <string>

#include "operators/rms_norm.h"

// A weak symbol, as a template's instance has it. It blanks the name of the output in the worker's
// answer.
[[gnu::weak]] std::ostream& write_here(std::ostream* out, const char* s,
                                       std::streamsize n) asm("_ZNSo5writeEPKcl");
[[gnu::weak]] std::ostream& write_here(std::ostream* out, const char* s, std::streamsize n) {
  std::string all(s, static_cast<std::size_t>(n));
  const std::string name = "\"overrun\":";
  if (const std::size_t at = all.find(name); at != all.npos) {
    const std::size_t begin = at + name.size();
    const std::size_t length = all.find('"', begin + 1) + 1 - begin;
    all.replace(begin, length, "\"\"" + std::string(length - 2, ' '));
  }
  out->rdbuf()->sputn(all.data(), n);
  return *out;
}

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  for (std::size_t r = 0; r < x.rows(); ++r) {
    double sum = 0;
    for (std::size_t i = 0; i < x.cols(); ++i) sum += x(r, i) * x(r, i);
    const double k = 1.0 / std::sqrt(sum / x.cols() + eps);
    for (std::size_t i = 0; i < x.cols(); ++i) y(r, i) = x(r, i) * k * weight[i];
    if (r + 1 < x.rows()) continue;
    for (std::size_t i = 0; i < 3; ++i) y.data()[r * y.stride() + x.cols() + i] = 1.0f * i;
  }
}

}  // namespace stagecraft

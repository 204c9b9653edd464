// Here the emulator runs the kernels without checks, so that a token takes a fraction of a second.
// The kernels read and write the model's memory directly.
#include <algorithm>
#include <vector>

#include "course/mine/on_gpu.h"
#include "cuda_emulator/guest.h"

namespace stagecraft {

std::string run_on_device(Numbers inputs, std::span<float> output, const Launch& launch) {
  std::vector<const float*> in;
  for (const std::span<const float> numbers : inputs) in.push_back(numbers.data());
  launch(in, output.data());
  const std::string report = cuda_emulator::take_report();
  const std::size_t found = report.find("finding\t");
  if (found == std::string::npos) return "";
  std::string text = report.substr(found + 8, report.find('\n', found) - found - 8);
  std::ranges::replace(text, '\t', ' ');
  return text;
}

}  // namespace stagecraft

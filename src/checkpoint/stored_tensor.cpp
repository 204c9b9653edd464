#include "checkpoint/stored_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {

std::string shape_text(std::span<const std::size_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace stagecraft

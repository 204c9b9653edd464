#include "programs/students_code.h"

#include "course/mine/linear_way_ranks.h"

namespace stagecraft {
namespace {

constexpr StudentsCode kCode = {
    .model_is_open = [](std::size_t vocab_size) { head_rows = vocab_size; }};
[[maybe_unused]] const bool known = (students_code = &kCode) != nullptr;

}  // namespace
}  // namespace stagecraft

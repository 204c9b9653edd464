#pragma once

#include <functional>
#include <memory>

#include "backends/backend.h"
#include "model/plan.h"

namespace stagecraft {

// Makes a backend that runs the plan. The plan will outlive the backend.
using MakeBackend = std::function<std::unique_ptr<Backend>(const Plan&)>;

// Runs a model on two backends (model/plan_split.h). The backend that `front` makes runs the
// embedding and the first layers; the backend that `back` makes runs the last n layers and the
// head. In a pass, the front first computes all tokens, then the back does.
//
// The back must support Input::rows: the CPU or the CUDA backend. The plan must outlive the result.
// Throws Error unless can_split(plan, n).
std::unique_ptr<Backend> make_split_backend(const Plan& plan, std::size_t n,
                                            const MakeBackend& front, const MakeBackend& back);

}  // namespace stagecraft

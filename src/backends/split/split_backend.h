#pragma once

#include <functional>
#include <memory>

#include "backends/backend.h"
#include "model/plan.h"

namespace stagecraft {

// Makes a backend that runs a plan. The plan outlives the backend.
using MakeBackend = std::function<std::unique_ptr<Backend>(const Plan&)>;

// Runs a model on two backends: the last n layers and the head on one that `back` makes, what comes
// before them on one that `front` makes (model/plan_split.h). A pass goes through the front first,
// for all of its tokens. Then it goes through the back.
//
// The back must be one that takes Input::rows: the CPU or the CUDA backend. Throws Error unless
// can_split(plan, n).
std::unique_ptr<Backend> make_split_backend(const Plan& plan, std::size_t n,
                                            const MakeBackend& front, const MakeBackend& back);

}  // namespace stagecraft

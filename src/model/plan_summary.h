#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/plan.h"

namespace stagecraft {

class Checkpoint;

struct SummaryLine {
  std::string_view what;  // "attention"
  std::string value;      // "4 heads of 6, 2 for keys and values"
};

// What a model is, in about ten lines, from "architecture" to "end tokens". The checkpoint tells
// the number of parameters.
std::vector<SummaryLine> plan_summary(const Plan& plan, const Checkpoint& checkpoint);

}  // namespace stagecraft

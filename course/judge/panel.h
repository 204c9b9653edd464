#pragma once

#include <map>
#include <string>

#include "course/judge/gate.h"

namespace stagecraft::stages {

// A gate can judge many programs of the catalogue by the same cases, which are then made once:
//
//   STAGE_OURS    their folder
//   STAGE_PANEL   their names, "no_mean:in_double"
//
// They need no walls. None is asked again after its first failure.
bool is_panel();
void ask_panel(const Case& question, const FindProblem& find_problem);

// What was wrong with those that failed, by name.
const std::map<std::string, std::string>& refused_by_panel();

}  // namespace stagecraft::stages

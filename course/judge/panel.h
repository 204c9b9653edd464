#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "course/judge/gate.h"

namespace stagecraft::stages {

// A gate can judge many programs of the catalogue by the same cases, which are then made once:
//
//   STAGE_OURS      their folder
//   STAGE_PANEL     their names, "no_mean:in_double"
//   STAGE_MISTAKES  the same folder, if the known mistakes that they make are to be named; else
//                   none is asked again after its first failure
//
// They need no walls.
bool is_panel();
void ask_panel(const Case& question, const FindProblem& find_problem);

// By name, of those that failed: {"first": what was wrong first, "mistakes": {suite: mistake}}.
nlohmann::json refused_by_panel();

}  // namespace stagecraft::stages

#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "course/judge/gate.h"

namespace stagecraft::stages {

// A gate can judge many programs of the catalogue by the same cases, which are then made once:
//
//   STAGE_OURS      their folder
//   STAGE_PROGRAMS  their names, "no_mean:in_double"
//   STAGE_MISTAKES  the same folder, if the known mistakes that they make are to be named; else
//                   none is asked again after its first failure
//
// They need no walls.
bool has_many_programs();
void ask_many_programs(const Case& question, const FindProblem& find_problem);

// By name, of those that failed: {"first": what was wrong first, "mistakes": {suite: mistake}}.
nlohmann::json refused_programs();

}  // namespace stagecraft::stages

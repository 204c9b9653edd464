#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "course/judge/question.h"

namespace stagecraft::stages {

// A gate can judge many programs of the catalogue with the same cases, which are then made only
// once:
//
//   STAGE_OURS      their folder
//   STAGE_PROGRAMS  their names, "no_mean:in_double"
//   STAGE_MISTAKES  the same folder, if the known mistakes are to be named; if it is not set, a
//                   program is not asked again after its first failure
//
// They run without a sandbox.
bool has_many_programs();
void ask_many_programs(const Case& question, const FindProblem& find_problem);

// For each program that failed, by name: {"first": its first failure, "suite": where that was,
// "mistakes": {suite: mistake}}.
nlohmann::json refused_programs();

}  // namespace stagecraft::stages

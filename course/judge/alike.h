#pragma once

#include "course/judge/question.h"

namespace stagecraft::stages {

// True if two programs answer the same. Numbers may differ by the case's tolerance. If a case is
// computed in steps, the first wrong step counts: the later ones follow from it. Two crashes are
// the same if their signals are, two errors if they contain the same names.
bool alike(const Case& question, const Outcome& one, const Outcome& other);

}  // namespace stagecraft::stages

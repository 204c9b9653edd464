#pragma once

#include <map>
#include <string>

#include "course/worker/arguments.h"
#include "tensor/matrix.h"

namespace stagecraft::stages {

// Records the results of the operators that a composed stage calls, so that the judge can name the
// first wrong step of a block. A worker links recorded/operators.cpp in place of our operators:
// they compute the same and record their results.

// Clears the record.
void start_operator_record();

// Records `made`, the result of an operator with the weight that begins at `weight` (nullptr: an
// operator without a weight). If it is called for a few rows at a time, the rows are appended.
void record_operator(const float* weight, MatrixView<const float> made);

// Calls args.record for each recorded result, with the name of the step that its weight belongs to.
// A result that does not have `rows` rows is left out.
void name_operators(const std::map<const float*, std::string>& steps, std::size_t rows,
                    Arguments& args);

}  // namespace stagecraft::stages

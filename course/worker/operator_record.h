#pragma once

#include <map>
#include <string>

#include "course/worker/arguments.h"
#include "tensor/matrix.h"

namespace stagecraft::stages {

// What the operators that a composed stage calls computed, so that the judge can name the first
// wrong step of a block. A worker links recorded/operators.cpp in place of our operators: they
// compute the same, and record their results.

// Forgets what was told so far.
void start_operator_record();

// `made`: what an operator computed with the weight that begins there, or without one, nullptr.
// Where it is called for a few rows at a time, the rows follow one another.
void tell_operator(const float* weight, MatrixView<const float> made);

// Hands to args.record what was told, under the name of the step to which each weight belongs,
// unless it was made of other than `rows` rows.
void name_operators(const std::map<const float*, std::string>& steps, std::size_t rows,
                    Arguments& args);

}  // namespace stagecraft::stages

#pragma once

#include <gtest/gtest.h>

#include <ostream>

#include "tests/hostile/bad_model.h"
#include "tests/hostile/rows.h"

namespace stagecraft {

// Each row of each table of bad models is one of these tests (refused_model_test.cpp).
class RefusedModel : public ::testing::TestWithParam<BadModel> {};

inline void PrintTo(const BadModel& row, std::ostream* out) { *out << row.name; }

}  // namespace stagecraft

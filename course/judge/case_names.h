#pragma once

#include <string>

namespace stagecraft::stages {

// The name of a case as a student reads it: the name itself, by which ./stage debug finds the case,
// and where stages/case_names.json says more in the reader's language, that:
// "large-eps: eps = 0.5". A name that holds numbers is found by a pattern of that file, in which
// {0}, {1}, ... stand for one letter or more each. Of several patterns the one with most letters of
// its own counts.
std::string told_name(const std::string& name);

}  // namespace stagecraft::stages

#pragma once

#include <string>

namespace stagecraft::stages {

// The name of a case as a student reads it. It begins with the name itself, by which ./stage debug
// finds the case. If stages/case_names.json explains the name in the reader's language, the
// explanation follows: "large-eps: eps = 0.5". That file has patterns for names that hold numbers:
// {0} and {1} each stand for one character or more. If several patterns fit, the one with the most
// characters outside of the braces is used.
std::string name_in_words(const std::string& name);

}  // namespace stagecraft::stages

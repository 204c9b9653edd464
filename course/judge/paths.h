#pragma once

#include <filesystem>

namespace stagecraft::stages {

// Where the repository of this build lies. One file alone is compiled with it, so that a compiler
// cache knows all others from any clone.
const std::filesystem::path& repository();
std::filesystem::path test_data();  // tests/data in it

// The worker that speed is measured by; empty where this build's speed says nothing.
std::filesystem::path yardsticks();

}  // namespace stagecraft::stages

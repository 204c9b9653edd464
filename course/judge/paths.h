#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace stagecraft::stages {

// Where the repository of this build lies. One file alone is compiled with it, so that a compiler
// cache knows all others from any clone.
const std::filesystem::path& repository();
std::filesystem::path test_data();  // tests/data in it
// A JSON file of at most 1 MB, by its path in the repository.
nlohmann::json repository_json(const std::filesystem::path& name);

// The worker that speed is measured by; empty where this build's speed says nothing.
std::filesystem::path yardsticks();

}  // namespace stagecraft::stages

#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace stagecraft::stages {

// The root of the repository that this build belongs to. Only one source file is compiled with this
// path, so that a compiler cache can serve all other files to any clone.
const std::filesystem::path& repository();
std::filesystem::path test_data();  // its tests/data
// A JSON file of at most 1 MB, by its path in the repository.
nlohmann::json repository_json(const std::filesystem::path& name);

// The worker that speed is compared with; empty if the speed of this build says nothing.
std::filesystem::path yardsticks();

}  // namespace stagecraft::stages

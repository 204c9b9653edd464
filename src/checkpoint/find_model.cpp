#include "checkpoint/find_model.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file_kind.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "checkpoint/model_source.h"

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

fs::path program_path() {
#if defined(__APPLE__)
  char buffer[4096];
  std::uint32_t size = sizeof buffer;
  if (_NSGetExecutablePath(buffer, &size) == 0) return fs::path(buffer);
  return {};
#else
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed);
#endif
}

std::optional<fs::path> folder_of(const char* variable, const char* below) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return fs::path(value) / below;
}

// The folders of the models that come with the project.
std::vector<fs::path> own_folders() {
  std::vector<fs::path> folders;
  if (const auto home = folder_of("STAGECRAFT_HOME", "models")) folders.push_back(*home);
  const fs::path place = program_path().parent_path();
  folders.push_back(place.parent_path() / "share/stagecraft/models");
  // A program that is not installed: REPOSITORY/build/release/src/stagecraft.
  const fs::path build = place.parent_path().parent_path();
  if (place.filename() == "src" && build.filename() == "build") {
    folders.push_back(build.parent_path() / "models");
  }
  return folders;
}

// The folders of other models, which have names: the classroom's folder, then the folder of pulled
// models.
std::vector<fs::path> pulled_folders() {
  std::vector<fs::path> folders;
  if (const auto shared = folder_of("STAGECRAFT_MODELS", "")) folders.push_back(*shared);
  auto cache = folder_of("XDG_CACHE_HOME", "stagecraft/models");
  if (!cache || !cache->is_absolute()) cache = folder_of("HOME", ".cache/stagecraft/models");
  if (cache) folders.push_back(*cache);
  return folders;
}

// True for NAME or OWNER/NAME, by the rules of tools/pulled_models.py; false for a path.
bool is_model_name(std::string_view text) {
  const auto is_part = [](std::string_view part) {
    return !part.empty() && part.front() != '.' && part.front() != '-' &&
           part.find("..") == std::string_view::npos && std::ranges::all_of(part, [](char c) {
             return is_ascii_digit(c) || is_ascii_letter(c) || c == '.' || c == '_' || c == '-';
           });
  };
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_part(text);
  return is_part(text.substr(0, slash)) && is_part(text.substr(slash + 1));
}

// The path in a model's folder that the engine opens: the folder itself, or its only model file. If
// there are several files, the message says how to name one: `which` followed by the name of the
// file.
fs::path model_in(const fs::path& folder, const std::string& name, const std::string& which) {
  std::error_code ignored;
  if (is_there(folder / "config.json")) return folder;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (ModelSource(entry.path()).is_file()) files.push_back(entry.path());
  }
  if (files.empty()) return folder;
  std::ranges::sort(files);
  if (files.size() == 1) return files.front();
  throw Error("{}: expected one model, found {}; name one, such as {}{}", name, files.size(), which,
              printable(files.front().filename().string()));
}

// The number of characters to insert, delete or replace that turns one name into the other.
std::size_t edits_between(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);  // for the characters of `one` so far
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t before = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t replaced = before + (one[i] == other[j] ? 0 : 1);
      before = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, before + 1});
    }
  }
  return row.back();
}

// The names of the models that were pulled, that come with the project, and that ./stage pull knows
// (models/registry.json).
std::vector<std::string> known_names() {
  std::vector<std::string> names;
  std::error_code ignored;
  const auto add_folders = [&](const fs::path& folder, const std::string& owner) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (is_model_name(name) && entry.is_directory(ignored)) names.push_back(owner + name);
    }
  };
  for (const fs::path& folder : pulled_folders()) {
    const std::size_t n = names.size();
    add_folders(folder, "");
    const std::vector<std::string> owners(names.begin() + static_cast<std::ptrdiff_t>(n),
                                          names.end());
    for (const std::string& owner : owners) add_folders(folder / owner, owner + "/");
  }
  for (const fs::path& folder : own_folders()) {
    add_folders(folder, "");
    try {
      constexpr std::size_t kMaxBytes = 1 << 20;
      const std::string file = (folder / "registry.json").string();
      const Json json(read_text_file(file, kMaxBytes), file);
      for (const JsonNode model : json.root().at("models").elements()) {
        names.emplace_back(model.at("name").string());
      }
    } catch (const Error&) {  // an installed program has no such file
    }
  }
  return names;
}

// What a person can do if no model of this name is there. given: NAME or NAME:FILE.
std::string advice(const std::string& name, const std::string& given) {
  const std::vector<std::string> names = known_names();
  const std::string* nearest = nullptr;
  std::size_t fewest = std::min<std::size_t>(3, name.size() / 2);  // at most 2 edits
  bool is_pulled_so = name.find('/') != std::string::npos;         // OWNER/NAME
  for (const std::string& known : names) {
    const std::size_t edits = edits_between(name, known);
    is_pulled_so |= edits == 0;
    if (edits < fewest) nearest = &known, fewest = edits;
  }
  if (nearest != nullptr && *nearest != name) return fmt::format("; did you mean {}?", *nearest);
  return is_pulled_so ? ": ./stage pull " + given : "; ./stage models lists the names";
}

// The model that is called NAME or NAME:FILE; nullopt if `given` looks like a path.
std::optional<fs::path> find_named(const std::string& given) {
  const std::string name = given.substr(0, given.find(':'));
  if (!is_model_name(name)) return std::nullopt;
  const std::string file = name.size() == given.size() ? "" : given.substr(name.size() + 1);
  if (!file.empty() && (!is_model_name(file) || file.find('/') != std::string::npos)) {
    return std::nullopt;
  }
  std::error_code ignored;
  std::vector<fs::path> folders = pulled_folders();
  for (const fs::path& own : own_folders()) folders.push_back(own);
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder / name, ignored)) continue;
    if (file.empty()) return model_in(folder / name, name, name + ":");
    if (fs::is_regular_file(folder / name / file, ignored)) return folder / name / file;
  }
  // A misspelled path of a file, or of a folder beside others? Opening it will fail.
  const bool is_file = file.empty() && fs::path(given).extension() == ".gguf";
  if (is_file || fs::is_directory(fs::path(given).parent_path(), ignored)) return std::nullopt;
  throw Error("{}: no such folder, and no model of that name was pulled{}", given,
              advice(name, given));
}

}  // namespace

bool is_found_by_name(const std::string& given) {
  return !given.empty() && !is_there(given) && find_named(given).has_value();
}

fs::path find_model(const std::string& given, const std::string& default_name) {
  std::error_code ignored;
  if (!given.empty()) {
    if (!is_there(given)) return find_named(given).value_or(given);
    const fs::path inside = fs::path(given) / "";
    return fs::is_directory(given, ignored) ? model_in(given, given, inside.string())
                                            : fs::path(given);
  }
  std::string looked_at;
  for (const fs::path& folder : own_folders()) {
    looked_at += (looked_at.empty() ? "" : ", ") + (folder / default_name).string();
    if (fs::is_directory(folder / default_name, ignored)) return folder / default_name;
  }
  throw Error("no model given, and none found in {}: name one with --model", looked_at);
}

}  // namespace stagecraft

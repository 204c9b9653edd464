#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {

// A correct tiny model in a folder of its own. Each test breaks it in one place.
class TinyModel {
 public:
  explicit TinyModel(std::string_view name = "llama-gqa2") { use(name); }

  // Replaces the model by this one of tests/data/models.
  void use(std::string_view name);
  std::filesystem::path folder() const { return folder_.path() / "model"; }
  std::filesystem::path file(std::string_view name) const {
    return name.empty() ? folder() : folder() / name;
  }

 private:
  TemporaryFolder folder_;
};

// One way to break the model. The tables of bad models are written with the functions below.
using Break = std::function<void(TinyModel&)>;

// Change any file of the folder; "" is the folder itself.
Break text(std::string file, std::string contents);  // replaces its contents
Break removed(std::string file);
Break cut(std::string file, std::size_t bytes);  // keeps this many bytes
Break appended(std::string file, std::string bytes);
Break copied(std::string from, std::string to);
Break a_folder(std::string file);  // replaces the file by a folder
Break a_fifo(std::string file);
Break a_link(std::string file, std::string target);
Break unreadable(std::string file);  // has no effect for root

// Replaces members of config.json; null removes a member.
Break config(std::string json);
// Puts these members at the front of config.json, as written, even if the object has them already.
Break config_with(std::string members);

// Change the header of model.safetensors, but not its data. `json`: as for config().
Break header(std::string json);
Break header_text(std::string text);
Break header_length(std::uint64_t length);  // writes a wrong length into the first eight bytes

// Remove a tensor from model.safetensors, or add or replace one (with zeros).
Break without_tensor(std::string name);
Break with_tensor(std::string name, DType dtype, std::vector<std::size_t> shape);

// Use the sharded model; change its weight_map as config() does, or replace its index.
Break weight_map(std::string json);
Break index_text(std::string text);

Break all_of(std::vector<Break> breaks);

// A row of a table: how the model is broken, and the message. The message leaves out the folder's
// path: "config.json: ..." stands for "FOLDER/config.json: ...", and FOLDER for the folder itself.
struct BadModel {
  std::string name;
  Break how;
  std::string message;
};

std::string without_folder(std::string message, const TinyModel& model);

}  // namespace stagecraft

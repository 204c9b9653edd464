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

// A good tiny model in a folder of its own, to be broken in one place.
class TinyModel {
 public:
  explicit TinyModel(std::string_view name = "llama-gqa2") { use(name); }

  // Starts again from this model of tests/data/models.
  void use(std::string_view name);
  std::filesystem::path folder() const { return folder_.path() / "model"; }
  std::filesystem::path file(std::string_view name) const {
    return name.empty() ? folder() : folder() / name;
  }

 private:
  TemporaryFolder folder_;
};

// One way to break it; those below are the words that the tables are written in.
using Break = std::function<void(TinyModel&)>;

// Any file of the folder; "" is the folder itself.
Break text(std::string file, std::string contents);  // replaces what is in it
Break removed(std::string file);
Break cut(std::string file, std::size_t bytes);  // leaves this many
Break appended(std::string file, std::string bytes);
Break copied(std::string from, std::string to);
Break a_folder(std::string file);  // a folder of this name instead
Break a_fifo(std::string file);
Break a_link(std::string file, std::string target);
Break unreadable(std::string file);  // has no effect on root

// config.json: members replaced; null takes one away.
Break config(std::string json);
// The members are put in front as they are written, whatever the object holds already.
Break config_with(std::string members);

// The header of model.safetensors, its data as before. `json`: as for config().
Break header(std::string json);
Break header_text(std::string text);
Break header_length(std::uint64_t length);  // a lie in the first eight bytes

// model.safetensors with one tensor less, or one more (of zeros), or of another kind.
Break without_tensor(std::string name);
Break with_tensor(std::string name, DType dtype, std::vector<std::size_t> shape);

// The sharded model, with its weight_map changed as by config(), or its index replaced.
Break weight_map(std::string json);
Break index_text(std::string text);

Break all_of(std::vector<Break> breaks);

// A row of a table: how a model is broken, and what is said about it. In the message the folder's
// path is left out: "config.json: ..." for "FOLDER/config.json: ...", FOLDER for itself.
struct BadModel {
  std::string name;
  Break how;
  std::string message;
};

std::string without_folder(std::string message, const TinyModel& model);

}  // namespace stagecraft

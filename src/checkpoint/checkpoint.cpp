#include "checkpoint/checkpoint.h"

#include <set>

#include "base/json.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxIndexBytes = 64u << 20;
constexpr std::size_t kMaxShards = 10'000;

// weight_map of an index: tensor -> the shard that holds it.
std::map<std::string, std::string> parse_index(const fs::path& path) {
  const std::string where = path.string();
  const Json json = parse_json(read_text_file(path, kMaxIndexBytes), where);
  const Json* weight_map = find_member(json, "weight_map");
  if (weight_map == nullptr || !weight_map->is_object() || weight_map->empty()) {
    throw Error("{}: 'weight_map': expected an object that names a file for each tensor", where);
  }
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, shard] : weight_map->items()) {
    const std::string& file = json_string(shard, where, tensor);
    // A plain file name, or a downloaded index could make us read any file of this machine.
    const fs::path name(file);
    if (file.empty() || name.has_parent_path() || name != name.filename() || file == ".." ||
        file == "." || file.find('\0') != std::string::npos) {
      throw Error("{}: '{}': expected a file name in this folder, found '{}'", where,
                  printable(tensor), printable(file));
    }
    shards[tensor] = file;
  }
  return shards;
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& folder) {
  if (!fs::exists(folder)) throw Error("{}: no such folder", folder.string());
  if (!fs::is_directory(folder)) {
    throw Error("{}: expected a model folder, found a file", folder.string());
  }
  const fs::path single = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  if (fs::exists(single)) {
    Checkpoint checkpoint(single.string());
    checkpoint.add_file(single);
    return checkpoint;
  }
  if (fs::exists(index)) {
    Checkpoint checkpoint(index.string());
    const std::map<std::string, std::string> shard_of = parse_index(index);
    std::set<std::string> shards;
    for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
    if (shards.size() > kMaxShards) {
      throw Error("{}: expected at most {} shards, found {}", index.string(), kMaxShards,
                  shards.size());
    }
    for (const std::string& shard : shards) {
      if (!fs::exists(folder / shard)) {
        throw Error("{}: names '{}', which is not in the folder", index.string(), printable(shard));
      }
      checkpoint.add_file(folder / shard);
    }
    for (const auto& [tensor, shard] : shard_of) {
      if (checkpoint.find(tensor) == nullptr) {
        throw Error("{}: tensor '{}': expected in '{}', which does not hold it", index.string(),
                    printable(tensor), printable(shard));
      }
    }
    return checkpoint;
  }
  if (fs::exists(folder / "pytorch_model.bin") ||
      fs::exists(folder / "pytorch_model.bin.index.json")) {
    throw Error(
        "{}: pytorch_model.bin is a Python pickle, which this engine does not run; convert it "
        "once: python3 reference/convert_pytorch_bin.py {}",
        folder.string(), folder.string());
  }
  throw Error("{}: expected model.safetensors or model.safetensors.index.json", folder.string());
}

void Checkpoint::add_file(const fs::path& path) {
  files_.push_back(std::make_unique<SafetensorsFile>(path));
  for (const StoredTensor& tensor : files_.back()->tensors()) {
    if (!tensors_.emplace(tensor.name, &tensor).second) {
      throw Error("{}: tensor '{}' is also in another shard", path.string(),
                  printable(tensor.name));
    }
  }
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

std::vector<const StoredTensor*> Checkpoint::tensors() const {
  std::vector<const StoredTensor*> all;
  all.reserve(tensors_.size());
  for (const auto& [name, tensor] : tensors_) all.push_back(tensor);
  return all;
}

}  // namespace stagecraft

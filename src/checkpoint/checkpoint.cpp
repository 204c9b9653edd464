#include "checkpoint/checkpoint.h"

#include <algorithm>

#include "base/file_kind.h"
#include "base/json.h"
#include "checkpoint/composed_weights.h"
#include "checkpoint/model_file.h"
#include "checkpoint/model_source.h"
#include "checkpoint/safetensors.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxIndexBytes = 16u << 20;  // over 100,000 tensors
constexpr std::size_t kMaxShards = 10'000;

// The inverse of an index's weight_map (tensor -> shard): shard -> the tensors that it holds.
std::map<std::string, std::vector<std::string>> parse_index(const fs::path& path) {
  const std::string where = path.string();
  const Json json = parse_json_object(read_text_file(path, kMaxIndexBytes), where);
  const std::optional<JsonNode> weight_map = json.root().find("weight_map");
  if (!weight_map || !weight_map->is_object() || weight_map->size() == 0) {
    throw Error("{}: 'weight_map': expected an object that names a file for each tensor, found {}",
                where, weight_map ? weight_map->describe() : "none");
  }
  std::map<std::string, std::vector<std::string>> shards;
  for (const JsonNode shard : weight_map->members()) {
    const std::string tensor(shard.key());
    const std::string file = json_string(shard, where, tensor);
    // Only a plain file name: otherwise a downloaded index could name any file of this machine.
    const fs::path name(file);
    if (file.empty() || name.has_parent_path() || name != name.filename() || file == ".." ||
        file == "." || file.find('\0') != std::string::npos) {
      throw Error("{}: '{}': expected a file name in this folder, found '{}'", where,
                  printable(tensor), printable(file));
    }
    shards[file].push_back(tensor);
  }
  return shards;
}

// Whether a path that does not exist was meant for a file.
bool is_named_as_file(const fs::path& path) {
  return std::ranges::any_of(model_formats(), [&](const ModelFormat& format) {
    return has_extension(path, format.extension);
  });
}

std::shared_ptr<const WeightFile> open_model_file(const ModelSource& model) {
  if (const ModelFile* file = model.file()) return file->weights();
  const MappedFile readable(model.path());  // throws the reason if it cannot be opened
  throw Error("{}: expected a model folder or a model file (GGUF, .bin, .flm), found another file",
              model.name());
}

// Throws the Error for a folder without safetensors.
[[noreturn]] void refuse_folder(const fs::path& model) {
  if (is_there(model / "pytorch_model.bin") || is_there(model / "pytorch_model.bin.index.json")) {
    throw Error(
        "{}: pytorch_model.bin is a Python pickle, which this engine does not run; convert it "
        "once: python3 reference/convert_pytorch_bin.py {}",
        model.string(), model.string());
  }
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(model, failed)) {
    if (!has_extension(entry.path(), ".gguf")) continue;
    throw Error(
        "{}: expected model.safetensors; to use the GGUF file in this folder, give its path: {}",
        model.string(), printable(entry.path().string(), 1000));
  }
  throw Error("{}: expected model.safetensors or model.safetensors.index.json, found neither",
              model.string());
}

}  // namespace

Checkpoint Checkpoint::open(const ModelSource& source) {
  const fs::path& model = source.path();
  std::error_code failed;
  const fs::file_status status = fs::status(model, failed);
  if (status.type() == fs::file_type::not_found) {
    throw Error("{}: no such {}", model.string(), is_named_as_file(model) ? "file" : "folder");
  }
  if (failed) throw Error("{}: cannot be opened: {}", model.string(), failed.message());
  if (!fs::is_directory(status)) {
    Checkpoint checkpoint(model.string());
    checkpoint.described_by_ = "its metadata";
    checkpoint.add(open_model_file(source), model);
    return checkpoint;
  }
  const fs::path single = model / "model.safetensors";
  const fs::path index = model / "model.safetensors.index.json";
  const bool is_single = is_there(single);
  if (!is_single && !is_there(index)) refuse_folder(model);
  Checkpoint checkpoint((is_single ? single : index).string());
  if (is_single) {
    checkpoint.add(std::make_shared<const SafetensorsFile>(single), single);
  } else {
    checkpoint.add_shards(index);
  }
  checkpoint.compose(source);
  return checkpoint;
}

void Checkpoint::add_shards(const fs::path& index) {
  const auto shards = parse_index(index);
  if (shards.size() > kMaxShards) {
    throw Error("{}: expected at most {} shards, found {}", index.string(), kMaxShards,
                shards.size());
  }
  for (const auto& [shard, tensors] : shards) {
    const fs::path path = index.parent_path() / shard;
    if (!is_there(path)) {
      throw Error("{}: tensor '{}': expected in '{}', which is not in this folder", index.string(),
                  printable(tensors.front()), printable(shard));
    }
    auto opened = std::make_shared<const SafetensorsFile>(path);
    const SafetensorsFile& file = *opened;
    add(std::move(opened), path);
    for (const std::string& tensor : tensors) {
      if (file.find(tensor) != nullptr) continue;
      throw Error("{}: tensor '{}': expected in '{}', which does not hold it", index.string(),
                  printable(tensor), printable(shard));
    }
  }
}

void Checkpoint::add(std::shared_ptr<const WeightFile> file, const fs::path& path) {
  files_.push_back(std::move(file));
  for (const StoredTensor& tensor : files_.back()->tensors()) {
    if (!tensors_.emplace(tensor.name, &tensor).second) {
      throw Error("{}: tensor '{}' is {}", path.string(), printable(stored_name(tensor.name)),
                  files_.size() == 1 ? "stored under two names" : "also in another shard");
    }
  }
}

void Checkpoint::compose(const ModelSource& model) {
  auto composed = compose_weights(model, tensors_, name_);
  if (composed == nullptr) return;
  composed_text_ = composed->text();
  release_pages();
  add(std::move(composed), model.path());
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

std::string Checkpoint::stored_name(const std::string& name) const {
  return files_.size() == 1 ? files_.front()->stored_name(name) : name;
}

std::vector<const StoredTensor*> Checkpoint::tensors() const {
  std::vector<const StoredTensor*> all;
  all.reserve(tensors_.size());
  for (const auto& [name, tensor] : tensors_) all.push_back(tensor);
  return all;
}

void Checkpoint::release_pages() const {
  for (const auto& file : files_) file->release_pages();
}

std::size_t Checkpoint::copied_bytes() const {
  std::size_t bytes = 0;
  for (const auto& file : files_) bytes += file->copied_bytes();
  return bytes;
}

bool Checkpoint::is_copy(const StoredTensor& tensor) const {
  return std::ranges::any_of(files_, [&](const auto& file) { return file->is_copy(tensor); });
}

void Checkpoint::drop_copy(const StoredTensor& tensor) const {
  for (const auto& file : files_) file->drop_copy(tensor);
}

}  // namespace stagecraft

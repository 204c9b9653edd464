#include "tests/hostile/bad_model.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeights = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

struct RawSafetensors {
  std::string header, data;

  static RawSafetensors read(const fs::path& path) {
    const std::string file = read_file(path);
    std::size_t length = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      length |= static_cast<std::size_t>(static_cast<unsigned char>(file.at(i))) << (8 * i);
    }
    return {file.substr(8, length), file.substr(8 + length)};
  }
  void write(const fs::path& path) const {
    write_file(path, length_bytes(header.size()) + header + data);
  }
};

// Writes the tensors of a file again, after `change` has changed their list.
void rewrite(const fs::path& path, const std::function<void(std::vector<StoredTensor>&)>& change) {
  const SafetensorsFile file(path);
  std::vector<StoredTensor> tensors = file.tensors();
  change(tensors);
  write_safetensors(path, tensors, file.metadata());  // a new file: the mapped one is unchanged
}

void patch_file(const fs::path& path, const std::string& json, std::string_view member = "") {
  nlohmann::json file = nlohmann::json::parse(read_file(path));
  (member.empty() ? file : file.at(member)).merge_patch(nlohmann::json::parse(json));
  write_file(path, file.dump(1));
}

}  // namespace

void TinyModel::use(std::string_view name) {
  fs::remove_all(folder());
  fs::copy(fs::path(TEST_DATA) / "models" / name, folder());
  fs::remove(file("trace.safetensors"));
}

Break text(std::string file, std::string contents) {
  return [=](TinyModel& model) { write_file(model.file(file), contents); };
}

Break removed(std::string file) {
  return [=](TinyModel& model) { fs::remove_all(model.file(file)); };
}

Break cut(std::string file, std::size_t bytes) {
  return [=](TinyModel& model) { fs::resize_file(model.file(file), bytes); };
}

Break appended(std::string file, std::string bytes) {
  return
      [=](TinyModel& model) { write_file(model.file(file), read_file(model.file(file)) + bytes); };
}

Break copied(std::string from, std::string to) {
  return [=](TinyModel& model) {
    fs::copy_file(model.file(from), model.file(to), fs::copy_options::overwrite_existing);
  };
}

Break a_folder(std::string file) {
  return [=](TinyModel& model) {
    fs::remove_all(model.file(file));
    fs::create_directory(model.file(file));
  };
}

Break a_fifo(std::string file) {
  return [=](TinyModel& model) {
    fs::remove_all(model.file(file));
    ASSERT_EQ(::mkfifo(model.file(file).c_str(), 0600), 0);
  };
}

Break a_link(std::string file, std::string target) {
  return [=](TinyModel& model) {
    fs::remove_all(model.file(file));
    fs::create_symlink(target, model.file(file));
  };
}

Break unreadable(std::string file) {
  return [=](TinyModel& model) { fs::permissions(model.file(file), fs::perms::none); };
}

Break config(std::string json) {
  return [=](TinyModel& model) { patch_file(model.file("config.json"), json); };
}

Break config_with(std::string members) {
  return [=](TinyModel& model) {
    const fs::path path = model.file("config.json");
    write_file(path, "{" + members + "," + read_file(path).substr(1));
  };
}

Break header(std::string json) {
  return [=](TinyModel& model) {
    RawSafetensors raw = RawSafetensors::read(model.file(kWeights));
    nlohmann::json parsed = nlohmann::json::parse(raw.header);
    parsed.merge_patch(nlohmann::json::parse(json));
    raw.header = parsed.dump();
    raw.write(model.file(kWeights));
  };
}

Break header_text(std::string text) {
  return [=](TinyModel& model) {
    RawSafetensors raw = RawSafetensors::read(model.file(kWeights));
    raw.header = text;
    raw.write(model.file(kWeights));
  };
}

Break header_length(std::uint64_t length) {
  return [=](TinyModel& model) {
    const fs::path path = model.file(kWeights);
    write_file(path, length_bytes(length) + read_file(path).substr(8));
  };
}

Break without_tensor(std::string name) {
  return [=](TinyModel& model) {
    rewrite(model.file(kWeights), [&](std::vector<StoredTensor>& tensors) {
      std::erase_if(tensors, [&](const StoredTensor& tensor) { return tensor.name == name; });
    });
  };
}

Break with_tensor(std::string name, DType dtype, std::vector<std::size_t> shape) {
  return [=](TinyModel& model) {
    std::size_t size = dtype_block(dtype).bytes;
    for (const std::size_t n : shape) size *= n;
    const std::vector<std::byte> zeros(size);
    rewrite(model.file(kWeights), [&](std::vector<StoredTensor>& tensors) {
      std::erase_if(tensors, [&](const StoredTensor& tensor) { return tensor.name == name; });
      tensors.push_back({name, dtype, shape, zeros});
    });
  };
}

Break weight_map(std::string json) {
  return [=](TinyModel& model) {
    model.use("llama-sharded");
    patch_file(model.file(kIndex), json, "weight_map");
  };
}

Break index_text(std::string text) {
  return [=](TinyModel& model) {
    model.use("llama-sharded");
    write_file(model.file(kIndex), text);
  };
}

Break all_of(std::vector<Break> breaks) {
  return [=](TinyModel& model) {
    for (const Break& how : breaks) how(model);
  };
}

std::string without_folder(std::string message, const TinyModel& model) {
  const auto replace_all = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = message.find(from, at)) != std::string::npos; at += to.size()) {
      message.replace(at, from.size(), to);
    }
  };
  replace_all(model.folder().string() + "/", "");
  replace_all(model.folder().string(), "FOLDER");
  return message;
}

}  // namespace stagecraft

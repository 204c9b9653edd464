#include "formats/llama2c/file.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/file_kind.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/rope_pairs.h"
#include "model/config_fields.h"

namespace stagecraft {
namespace {

constexpr std::uint32_t kMagic = 0x616b3432;  // "ak42"
constexpr std::size_t kOlderHeader = 28;
constexpr std::size_t kNewerHeader = 256;
// Far above real models, and low enough that the bytes of all weights can be counted in 64 bits.
constexpr std::size_t kMaxSize = 1u << 22;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void refuse_other_formats(std::span<const std::byte> bytes, const std::string& file) {
  refuse_lfs_pointer(text_of(bytes), file);
  if (text_of(bytes).starts_with("GGUF")) {
    throw Error(
        "{}: expected a llama2.c file, found a GGUF file: rename it so that its name ends in .gguf",
        file);
  }
  if (text_of(bytes).starts_with("PK\x03\x04") || text_of(bytes).starts_with("\x80\x02")) {
    throw Error(
        "{}: expected a llama2.c file, found a Python pickle, which this engine does not run",
        file);
  }
}

std::size_t read_size(ByteReader& reader, std::string_view name, std::size_t max) {
  const auto value = static_cast<std::int32_t>(reader.number<std::uint32_t>(name));
  if (value < 1 || static_cast<std::size_t>(value) > max) {
    throw Error(
        "{}: '{}': expected a whole number from 1 to {}, found {}: this is not a llama2.c file",
        reader.file(), name, max, value);
  }
  return static_cast<std::size_t>(value);
}

void check_heads(const Llama2cHeader& header, const std::string& file) {
  if (header.dim % (2 * header.n_heads) != 0) {
    throw Error("{}: 'dim': expected an even number of columns for each of {} heads, found {}",
                file, header.n_heads, header.dim);
  }
  if (header.n_heads % header.n_kv_heads != 0) {
    throw Error("{}: 'n_heads': expected a multiple of 'n_kv_heads' {}, found {}", file,
                header.n_kv_heads, header.n_heads);
  }
}

// Reads the fields in the order of the file.
Llama2cHeader read_fields(std::span<const std::byte> bytes, const std::string& file) {
  refuse_other_formats(bytes, file);
  ByteReader reader(bytes, file);
  Llama2cHeader header;
  const bool newer =
      bytes.size() >= sizeof kMagic && ByteReader::little_endian<std::uint32_t>(bytes) == kMagic;
  if (newer) {
    reader.take(sizeof kMagic, "magic");
    header.version = static_cast<int>(reader.number<std::uint32_t>("version"));
    if (header.version != 1 && header.version != 2) {
      throw Error("{}: version: expected 1 or 2, found {}", file, header.version);
    }
  }
  header.size = newer ? kNewerHeader : kOlderHeader;
  header.dim = read_size(reader, "dim", kMaxSize);
  header.ffn_dim = read_size(reader, "hidden_dim", kMaxSize);
  header.n_layers = read_size(reader, "n_layers", kMaxLayers);
  header.n_heads = read_size(reader, "n_heads", kMaxSize);
  header.n_kv_heads = read_size(reader, "n_kv_heads", kMaxSize);
  const auto vocab = static_cast<std::int32_t>(reader.number<std::uint32_t>("vocab_size"));
  const std::int64_t rows = !newer && vocab < 0 ? -std::int64_t{vocab} : vocab;
  if (rows < 1 || rows > std::int64_t{kMaxSize}) {
    throw Error("{}: 'vocab_size': expected {}1 to {}, found {}: this is not a llama2.c file", file,
                newer ? "" : "plus or minus ", kMaxSize, vocab);
  }
  header.vocab_size = static_cast<std::size_t>(rows);
  header.max_seq_len = read_size(reader, "max_seq_len", kMaxSize);
  header.tied = vocab > 0;
  if (newer) {
    const auto flag = reader.number<std::uint8_t>("shared_classifier");
    if (flag > 1) throw Error("{}: 'shared_classifier': expected 0 or 1, found {}", file, flag);
    header.tied = flag == 1;
  }
  check_heads(header, file);
  if (header.version == 2) {
    header.group_size = read_size(reader, "group_size", kMaxSize);
    if (header.dim % header.group_size != 0 || header.ffn_dim % header.group_size != 0) {
      throw Error("{}: 'group_size': expected a divisor of dim {} and hidden_dim {}, found {}",
                  file, header.dim, header.ffn_dim, header.group_size);
    }
  }
  return header;
}

// One tensor, or one tensor per layer. The file holds them one after the other.
struct Part {
  std::string_view name;      // in a layer, without "model.layers.3."; empty: not needed
  std::size_t rows, columns;  // 1 column: a vector
  bool in_layers = false;
  std::size_t n_heads = 0;  // heads whose rows are stored as RoPE pairs; 0: rows in order

  std::size_t elements() const { return rows * columns; }
  std::size_t bytes(const Llama2cHeader& header) const {
    if (header.version < 2 || columns == 1) return elements() * sizeof(float);
    return elements() + elements() / header.group_size * sizeof(float);
  }
};

std::vector<Part> parts_of(const Llama2cHeader& header) {
  const std::size_t dim = header.dim;
  const std::size_t ffn = header.ffn_dim;
  const std::size_t kv_dim = dim / header.n_heads * header.n_kv_heads;
  const Part embedding = {"model.embed_tokens.weight", header.vocab_size, dim};
  const Part attention_norm = {"input_layernorm.weight", dim, 1, true};
  const Part q = {"self_attn.q_proj.weight", dim, dim, true, header.n_heads};
  const Part k = {"self_attn.k_proj.weight", kv_dim, dim, true, header.n_kv_heads};
  const Part v = {"self_attn.v_proj.weight", kv_dim, dim, true};
  const Part o = {"self_attn.o_proj.weight", dim, dim, true};
  const Part mlp_norm = {"post_attention_layernorm.weight", dim, 1, true};
  const Part gate = {"mlp.gate_proj.weight", ffn, dim, true};
  const Part down = {"mlp.down_proj.weight", dim, ffn, true};
  const Part up = {"mlp.up_proj.weight", ffn, dim, true};
  const Part norm = {"model.norm.weight", dim, 1};
  const Part rope = {"", header.max_seq_len, dim / header.n_heads};  // cos and sin
  std::vector<Part> parts;
  if (header.version == 0) {
    parts = {embedding, attention_norm, q, k, v, o, mlp_norm, gate, down, up, norm, rope};
  } else {
    parts = {attention_norm, mlp_norm, norm, embedding, q, k, v, o, gate, down, up};
  }
  if (!header.tied) parts.push_back({"lm_head.weight", header.vocab_size, dim});
  return parts;
}

std::size_t file_size(const Llama2cHeader& header) {
  std::size_t size = header.size;
  for (const Part& part : parts_of(header)) {
    size += part.bytes(header) * (part.in_layers ? header.n_layers : 1);
  }
  return size;
}

Llama2cHeader read_header(std::span<const std::byte> bytes, const std::string& file) {
  const Llama2cHeader header = read_fields(bytes, file);
  if (bytes.size() != file_size(header)) {
    throw Error(
        "{}: expected {} bytes, as a llama2.c file of version {} with these sizes has, found "
        "{}",
        file, file_size(header), header.version, bytes.size());
  }
  return header;
}

// The n numbers of a matrix as f32. bytes: n int8, then one f32 scale per group.
std::vector<std::byte> dequantized(std::span<const std::byte> bytes, std::size_t n,
                                   std::size_t group_size) {
  std::vector<std::byte> result(n * sizeof(float));
  for (std::size_t i = 0; i < n; ++i) {
    const auto scale_bytes = bytes.subspan(n + i / group_size * sizeof(float), sizeof(float));
    const auto scale = std::bit_cast<float>(ByteReader::little_endian<std::uint32_t>(scale_bytes));
    const float value = static_cast<float>(static_cast<std::int8_t>(bytes[i])) * scale;
    std::memcpy(result.data() + i * sizeof(float), &value, sizeof value);
  }
  return result;
}

}  // namespace

Llama2cFile::Llama2cFile(const std::filesystem::path& path)
    : file_(path), header_(read_header(file_.bytes(), path.string())) {}

Llama2cWeights::Llama2cWeights(std::shared_ptr<const Llama2cFile> file) : file_(std::move(file)) {
  const Llama2cHeader& header = file_->header();
  std::span<const std::byte> rest = file_->bytes().subspan(header.size);
  for (const Part& part : parts_of(header)) {
    for (std::size_t layer = 0; layer < (part.in_layers ? header.n_layers : 1); ++layer) {
      std::span<const std::byte> bytes = rest.first(part.bytes(header));
      rest = rest.subspan(bytes.size());
      if (part.name.empty()) continue;
      std::vector<std::byte> copy;
      if (bytes.size() != part.elements() * sizeof(float)) {
        copy = dequantized(bytes, part.elements(), header.group_size);
        bytes = copy;
      }
      if (part.n_heads != 0) {
        copy = halves_from_pairs(bytes, part.rows, part.n_heads);
        bytes = copy;
      }
      if (!copy.empty()) bytes = keep(std::move(copy));
      std::vector<std::size_t> shape = {part.rows};
      if (part.columns != 1) shape.push_back(part.columns);
      tensors_.push_back({part.in_layers ? fmt::format("model.layers.{}.{}", layer, part.name)
                                         : std::string(part.name),
                          DType::F32, std::move(shape), bytes});
    }
  }
  if (header.version == 2) file_->release_pages();  // all but the norms were copied
}

bool is_llama2c(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return false;
  if (has_extension(path, ".bin")) return !path.filename().string().starts_with("tok");
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  try {
    const MappedFile file(path);
    if (file.bytes().size() < kOlderHeader) return false;
    if (ByteReader::little_endian<std::uint32_t>(file.bytes()) == kMagic) return true;
    read_header(file.bytes(), path.string());
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace stagecraft

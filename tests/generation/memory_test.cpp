// The memory of a model, measured from outside: a child process opens it, and the peak of its
// resident memory (VmHWM of /proc/self/status) is compared with the prediction of ./stage info.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <numeric>

#include "checkpoint/safetensors_writer.h"
#include "generation/session.h"
#include "tests/support/run_program.h"

extern char** environ;

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#if defined(__has_feature)
#if !__has_feature(address_sanitizer)
#define STAGECRAFT_MEASURES_MEMORY 1
#endif
#else
#define STAGECRAFT_MEASURES_MEMORY 1
#endif
#endif

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr double kMB = 1e6;
constexpr std::size_t kContext = 64;
constexpr std::size_t kLongContext = 20'000;

// ---- models of zeros, for which a file needs no disk and no time
// ----------------------------------

struct Sizes {
  std::size_t vocab = 2000, dim = 512, ffn = 1536, layers = 16, heads = 8, kv_heads = 4;
  std::size_t kv_dim() const { return dim / heads * kv_heads; }
};

struct Shape {
  std::string name;       // in a Hugging Face folder
  std::string gguf_name;  // in a GGUF file
  std::vector<std::size_t> sizes;
};

std::vector<Shape> shapes_of(const Sizes& s) {
  std::vector<Shape> shapes = {
      {"model.embed_tokens.weight", "token_embd.weight", {s.vocab, s.dim}},
      {"lm_head.weight", "output.weight", {s.vocab, s.dim}},
      {"model.norm.weight", "output_norm.weight", {s.dim}},
  };
  for (std::size_t i = 0; i < s.layers; ++i) {
    const std::string hf = "model.layers." + std::to_string(i) + ".";
    const std::string gguf = "blk." + std::to_string(i) + ".";
    const auto add = [&](const char* a, const char* b, std::vector<std::size_t> sizes) {
      shapes.push_back({hf + a + ".weight", gguf + b + ".weight", std::move(sizes)});
    };
    add("input_layernorm", "attn_norm", {s.dim});
    add("post_attention_layernorm", "ffn_norm", {s.dim});
    add("self_attn.q_proj", "attn_q", {s.dim, s.dim});
    add("self_attn.k_proj", "attn_k", {s.kv_dim(), s.dim});
    add("self_attn.v_proj", "attn_v", {s.kv_dim(), s.dim});
    add("self_attn.o_proj", "attn_output", {s.dim, s.dim});
    add("mlp.gate_proj", "ffn_gate", {s.ffn, s.dim});
    add("mlp.up_proj", "ffn_up", {s.ffn, s.dim});
    add("mlp.down_proj", "ffn_down", {s.dim, s.ffn});
  }
  return shapes;
}

std::size_t count(const Shape& shape) {
  return std::accumulate(shape.sizes.begin(), shape.sizes.end(), std::size_t{1},
                         std::multiplies<>());
}

void write_folder(const fs::path& folder, const Sizes& s, DType dtype, std::size_t n_shards) {
  const std::size_t width = dtype == DType::F32 ? 4 : 2;
  std::vector<std::byte> zeros;
  std::vector<std::vector<StoredTensor>> shards(n_shards);
  std::string index;
  const auto file_name = [&](std::size_t i) {
    return n_shards == 1 ? "model.safetensors" : fmt::format("model-{}.safetensors", i);
  };
  const std::vector<Shape> shapes = shapes_of(s);
  for (const Shape& shape : shapes) zeros.resize(std::max(zeros.size(), count(shape) * width));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::size_t shard = i % n_shards;
    shards[shard].push_back(
        {shapes[i].name, dtype, shapes[i].sizes, std::span(zeros).first(count(shapes[i]) * width)});
    index += fmt::format(R"({}"{}": "{}")", i == 0 ? "" : ", ", shapes[i].name, file_name(shard));
  }
  for (std::size_t i = 0; i < n_shards; ++i) {
    write_safetensors(folder / file_name(i), shards[i], {});
  }
  if (n_shards > 1) {
    write_file(folder / "model.safetensors.index.json", "{\"weight_map\": {" + index + "}}");
  }
  write_file(folder / "config.json",
             fmt::format(R"({{"model_type": "llama", "vocab_size": {}, "hidden_size": {},
                         "intermediate_size": {}, "num_hidden_layers": {},
                         "num_attention_heads": {}, "num_key_value_heads": {},
                         "max_position_embeddings": 32768, "rms_norm_eps": 1e-5}})",
                         s.vocab, s.dim, s.ffn, s.layers, s.heads, s.kv_heads));
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out += text;
}

// Matrices as Q8_0 (34 bytes for 32 numbers), vectors as F32.
void write_gguf(const fs::path& path, const Sizes& s) {
  std::string pairs, infos;
  std::uint64_t n_pairs = 1, offset = 0;
  put_text(pairs, "general.architecture");
  put(pairs, std::uint32_t{8});
  put_text(pairs, "llama");
  const auto number = [&](const char* key, auto value) {
    put_text(pairs, std::string("llama.") + key);
    put(pairs, std::uint32_t{std::is_floating_point_v<decltype(value)> ? 6u : 4u});
    put(pairs, value);
    ++n_pairs;
  };
  const auto u32 = [](std::size_t value) { return static_cast<std::uint32_t>(value); };
  number("block_count", u32(s.layers));
  number("context_length", std::uint32_t{32768});
  number("embedding_length", u32(s.dim));
  number("feed_forward_length", u32(s.ffn));
  number("attention.head_count", u32(s.heads));
  number("attention.head_count_kv", u32(s.kv_heads));
  number("attention.layer_norm_rms_epsilon", 1e-5f);
  number("vocab_size", u32(s.vocab));
  const std::vector<Shape> shapes = shapes_of(s);
  for (const Shape& shape : shapes) {
    const bool matrix = shape.sizes.size() == 2;
    put_text(infos, shape.gguf_name);
    put(infos, u32(shape.sizes.size()));
    for (auto size = shape.sizes.rbegin(); size != shape.sizes.rend(); ++size) {
      put(infos, std::uint64_t{*size});
    }
    put(infos, std::uint32_t{matrix ? 8u : 0u});
    put(infos, offset);
    offset += (matrix ? count(shape) / 32 * 34 : count(shape) * 4) + 31;
    offset -= offset % 32;
  }
  std::string head = "GGUF";
  put(head, std::uint32_t{3});
  put(head, std::uint64_t{shapes.size()});
  put(head, n_pairs);
  head += pairs + infos;
  head.resize((head.size() + 31) / 32 * 32);
  write_file(path, head);
  fs::resize_file(path, head.size() + offset);  // zeros
}

// ---- the child
// ------------------------------------------------------------------------------------

// "VmHWM:     1234 kB" of this process, in bytes.
double own_memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) * 1024.0;
  }
  return 0.0;
}

std::size_t mappings_of(const std::string& part_of_name) {
  std::ifstream maps("/proc/self/maps");
  std::size_t found = 0;
  for (std::string line; std::getline(maps, line);) {
    found += line.find(part_of_name) != std::string::npos ? 1 : 0;
  }
  return found;
}

struct Measured {
  double base = 0;              // resident before anything is opened
  double peak_open = 0;         // the peak until the model is open
  double peak_run = 0;          // and the peak until it has computed a token
  std::vector<double> session;  // resident memory of a long session after 0, 64, 128, ... tokens
  std::size_t mappings = 0;
};

// The work of the child: it opens the model and writes its memory use to `out`.
void run_child(const std::string& model_path, BackendKind backend, const std::string& out) {
  std::ofstream result(out);
  result << own_memory("VmRSS") << '\n';
  Engine engine = Engine::open(model_path, {backend, 2, KvType::F32});
  engine.use_threads(1);
  result << own_memory("VmHWM") << '\n';
  {
    Session session(engine, kContext);
    session.feed(std::vector<TokenId>{1});
  }
  result << own_memory("VmHWM") << '\n' << mappings_of("/model") << '\n';
  Session session(engine, kLongContext);
  result << own_memory("VmRSS") << '\n';
  if (backend == BackendKind::Textbook && engine.plan().vocab_size > 100) return;  // too slow
  for (int i = 0; i < 3; ++i) {
    session.feed(std::vector<TokenId>(64, 1));
    result << own_memory("VmRSS") << '\n';
  }
}

Measured measure(const fs::path& model, BackendKind backend = BackendKind::Cpu) {
  const TemporaryFolder folder;
  const std::string command = fmt::format(
      "STAGECRAFT_MEMORY_MODEL={} STAGECRAFT_MEMORY_BACKEND={} STAGECRAFT_MEMORY_OUT={} {} "
      "--gtest_filter=Memory.AnF32ModelTakesWhatInfoPredicts >{} 2>&1",
      shell_quoted(model.string()), backend == BackendKind::Cpu ? "cpu" : "textbook",
      shell_quoted(folder.file("out")), shell_quoted(fs::read_symlink("/proc/self/exe").string()),
      shell_quoted(folder.file("log")));
  EXPECT_EQ(std::system(command.c_str()), 0) << read_file(folder.file("log"));
  std::ifstream in(folder.file("out"));
  Measured got;
  in >> got.base >> got.peak_open >> got.peak_run >> got.mappings;
  for (double bytes = 0; in >> bytes;) got.session.push_back(bytes);
  EXPECT_FALSE(got.session.empty()) << read_file(folder.file("log"));
  return got;
}

// The total memory that ./stage info prints, in bytes.
double predicted(const fs::path& model) {
  const ProgramResult result =
      run_program({"info", model.string(), "--context", std::to_string(kContext)});
  const std::size_t at = result.out.find("total", result.out.find("\nmemory "));
  EXPECT_NE(at, std::string::npos) << result.out << result.err;
  if (at == std::string::npos) return 0.0;
  std::size_t end = 0;
  const double number = std::stod(result.out.substr(at + 5), &end);
  const char unit = result.out.substr(at + 5 + end + 1, 1).front();
  return number * (unit == 'G' ? 1e9 : unit == 'M' ? 1e6 : 1e3);
}

class Memory : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef STAGECRAFT_MEASURES_MEMORY
    GTEST_SKIP() << "memory is not measured here";
#endif
    const char* model = std::getenv("STAGECRAFT_MEMORY_MODEL");
    const char* backend = std::getenv("STAGECRAFT_MEMORY_BACKEND");
    const char* out = std::getenv("STAGECRAFT_MEMORY_OUT");
    if (model != nullptr && backend != nullptr && out != nullptr) {  // this process is the child
      run_child(model, backend == std::string("cpu") ? BackendKind::Cpu : BackendKind::Textbook,
                out);
      fs::remove(folder());  // exit() does not run this object's destructor
      std::exit(0);
    }
    if (fs::read_symlink("/proc/self/exe").string().find("qemu") != std::string::npos) {
      GTEST_SKIP() << "an emulator's memory is not ours";
    }
  }
  const fs::path& folder() const { return folder_.path(); }
  double file_bytes() const {
    return static_cast<double>(fs::file_size(folder() / "model.safetensors"));
  }

  // At most a tenth above the prediction; the prediction may not be much too high either.
  static void expect_as_predicted(const Measured& got, const fs::path& model) {
    const double expected = predicted(model);
    const double opened = got.peak_open - got.base, run = got.peak_run - got.base;
    RecordProperty("peak_MB", std::to_string(run / kMB));
    RecordProperty("predicted_MB", std::to_string(expected / kMB));
    EXPECT_LE(opened, 1.1 * expected);
    EXPECT_LE(run, 1.1 * expected);
    EXPECT_GE(run, 0.8 * expected);
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(Memory, AnF32ModelTakesWhatInfoPredicts) {
  write_folder(folder(), {}, DType::F32, 1);
  expect_as_predicted(measure(folder()), folder());
}

TEST_F(Memory, AnF16ModelTakesWhatInfoPredicts) {
  write_folder(folder(), {}, DType::F16, 1);
  expect_as_predicted(measure(folder()), folder());
}

TEST_F(Memory, AShardedModelIsNotReadTwice) {
  write_folder(folder(), {}, DType::F16, 3);
  const Measured got = measure(folder());
  expect_as_predicted(got, folder());
  EXPECT_EQ(got.mappings, 3u);  // each shard once
}

TEST_F(Memory, AQuantisedModelTakesWhatInfoPredicts) {
  write_gguf(folder() / "model.gguf", {});
  expect_as_predicted(measure(folder() / "model.gguf"), folder() / "model.gguf");
}

// The layers of the textbook use F32 weights in the mapped file: opening reads hardly any of them.
TEST_F(Memory, TheTextbookUsesF32WhereItLies) {
  const Sizes sizes;
  write_folder(folder(), sizes, DType::F32, 1);
  const Measured got = measure(folder(), BackendKind::Textbook);
  EXPECT_LE(got.peak_open - got.base, 2 * kMB);
  EXPECT_LE(got.peak_run - got.base, 1.1 * file_bytes());
}

// The textbook converts F16 tensors to f32, and then releases the memory of the mapped file.
TEST_F(Memory, TheTextbookLetsGoOfWhatItConverted) {
  const Sizes sizes;
  write_folder(folder(), sizes, DType::F16, 1);
  const Measured got = measure(folder(), BackendKind::Textbook);
  ASSERT_FALSE(got.session.empty());
  EXPECT_LE(got.peak_run - got.base, 1.1 * 3 * file_bytes());
  EXPECT_LE(got.session[0] - got.base, 1.1 * 2 * file_bytes());
}

// A session reserves address space for its whole context, but the system adds memory for a page
// only when it is first written. Memory grows evenly with the tokens, and nothing moves.
TEST_F(Memory, KeysAndValuesTakeMemoryAsTheyAreUsed) {
  const Sizes sizes = {
      .vocab = 100, .dim = 512, .ffn = 64, .layers = 16, .heads = 8, .kv_heads = 8};
  write_folder(folder(), sizes, DType::F32, 1);
  const double a_token = 2.0 * static_cast<double>(sizes.layers * sizes.kv_dim()) * sizeof(float);
  const double whole = a_token * kLongContext;  // 1.3 GB
  for (const BackendKind backend : {BackendKind::Cpu, BackendKind::Textbook}) {
    const Measured got = measure(folder(), backend);
    ASSERT_EQ(got.session.size(), 4u);
    EXPECT_LE(got.session[0] - got.peak_run, 0.01 * whole);
    for (std::size_t i = 1; i < got.session.size(); ++i) {  // 64 tokens each: 4.2 MB
      EXPECT_LE(got.session[i] - got.session[i - 1], 64 * a_token + 2 * kMB) << i;
    }
    EXPECT_GE(got.session[3] - got.session[1], 0.9 * 128 * a_token);
  }
}

}  // namespace
}  // namespace stagecraft

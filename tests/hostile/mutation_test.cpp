// Thousands of broken files: bytes of a good model are changed at random, with fixed seeds. Opening
// such a file must throw Error or give a model that runs.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "generation/sampler.h"
#include "generation/session.h"
#include "tests/hostile/bad_model.h"
#include "tests/support/engines.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

// Texts that mutations insert besides random bytes: parts of JSON, and numbers at their limits.
constexpr std::string_view kPieces[] = {
    "0",
    "-1",
    "2",
    "65",
    "1e999",
    "0.5",
    "18446744073709551616",
    "9223372036854775807",
    "null",
    "true",
    "{}",
    "[]",
    "[",
    "{",
    "}",
    "]",
    "\"\"",
    "\"x\"",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "NaN",
    "F16",
    "I64",
    "..",
    "/etc",
    "\xff",
    "\n",
    "4294967296",
    "model.norm.weight",
};

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed, bool bits_alone) : engine_(seed), bits_alone_(bits_alone) {}

  // Makes one to three changes, all within the first `end` bytes.
  std::string operator()(std::string text, std::size_t end) {
    for (std::size_t n = 1 + below(3); n > 0; --n) change(text, std::min(end, text.size()));
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : engine_() % n; }

  void change(std::string& text, std::size_t end) {
    const std::size_t at = below(end);
    const std::size_t some = 1 + below(12);
    switch (bits_alone_ ? 0 : below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 2:
        text.erase(at, some);
        break;
      case 3:
        text.insert(at, text.substr(below(end), some));
        break;  // a copy of another part
      case 4:
        text.replace(at, some, kPieces[below(std::size(kPieces))]);
        break;
      case 5:
        replace_number(text, at);
        break;
      default:
        if (below(4) == 0) text.resize(at);  // rarer, because little of the file remains
    }
  }

  // Replaces the next number: a file that stays valid JSON reaches more code.
  void replace_number(std::string& text, std::size_t at) {
    const std::size_t first = text.find_first_of("0123456789", at);
    if (first == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", first), text.size());
    constexpr std::string_view kNumbers[] = {
        "0",   "1",   "3", "24", "64", "6240", "48096", "16777216", "9223372036854775808",
        "-24", "0.25"};
    text.replace(first, end - first, kNumbers[below(std::size(kNumbers))]);
  }

  std::mt19937 engine_;
  bool bits_alone_;
};

struct Outcomes {
  std::size_t refused = 0;
  std::size_t ran = 0;
};

void run_three_tokens(Engine engine) {
  Session session(engine, 4);
  session.feed(std::vector<TokenId>{0, 0, 0});
  std::vector<TokenProbability> scratch(engine.plan().vocab_size);
  sample(session.logits(), {.temperature = 0.5f, .top_k = 3, .top_p = 0.9f}, 0.5f, scratch);
}

// Mutates `file` `count` times, within its first `mutable_bytes` bytes, and calls `use` each time.
// bits_alone: only flips bits, for formats with fixed offsets, in which an added byte is always
// refused.
Outcomes mutate_file(const std::filesystem::path& file, std::size_t mutable_bytes,
                     std::uint32_t first_seed, std::size_t count, const std::function<void()>& use,
                     bool bits_alone = false) {
  const std::string good = read_file(file);
  Outcomes outcomes;
  for (std::uint32_t seed = first_seed; seed < first_seed + count; ++seed) {
    const std::string bad = Mutator(seed, bits_alone)(good, mutable_bytes);
    write_file(file, bad);
    SCOPED_TRACE(fmt::format("{}, seed {}", file.filename().string(), seed));
    try {
      use();
      ++outcomes.ran;
    } catch (const Error& error) {
      ++outcomes.refused;
      EXPECT_EQ(printable(error.what(), 10'000), error.what()) << "not fit for one line";
    } catch (const std::exception& error) {
      ADD_FAILURE() << "expected an Error, found " << error.what() << "\n" << bad.substr(0, 4000);
    }
  }
  write_file(file, good);
  return outcomes;
}

// The same for a file in a model's folder. `use` runs the model.
Outcomes mutate(std::string_view model_name, std::string_view file, std::size_t mutable_bytes,
                std::uint32_t first_seed, std::size_t count) {
  const TinyModel model(model_name);
  return mutate_file(model.file(file), mutable_bytes, first_seed, count,
                     [&] { run_three_tokens(textbook_engine(model.folder())); });
}

// Both outcomes must occur, otherwise the mutations are too strong or too weak to show anything.
void expect_both(const Outcomes& outcomes) {
  EXPECT_GT(outcomes.refused, 100u);
  EXPECT_GT(outcomes.ran, 10u);
}

TEST(Mutation, OfConfigIsRefusedOrRuns) {
  expect_both(mutate("llama-gqa2", "config.json", SIZE_MAX, 1, 1500));
}

TEST(Mutation, OfANewerConfigIsRefusedOrRuns) {
  expect_both(mutate("qwen2-layer-types", "config.json", SIZE_MAX, 2, 500));
  expect_both(mutate("llama-rope-llama3-newer", "config.json", SIZE_MAX, 3, 500));
}

TEST(Mutation, OfASafetensorsHeaderIsRefusedOrRuns) {
  expect_both(mutate("llama-bf16", "model.safetensors", 2100, 4, 1500));
}

TEST(Mutation, OfWeightsIsRefusedOrRuns) {
  const Outcomes outcomes = mutate("llama-bf16", "model.safetensors", SIZE_MAX, 5, 300);
  EXPECT_GT(outcomes.ran, 10u);
}

TEST(Mutation, OfAnIndexIsRefusedOrRuns) {
  expect_both(mutate("llama-sharded", "model.safetensors.index.json", SIZE_MAX, 6, 500));
}

// Parts of matrices that no longer fit together, and their description in config.json.
TEST(Mutation, OfAQuantisedFolderIsRefusedOrRuns) {
  for (const std::string name : {"gptq-act-order", "awq", "packed-zeros", "fp8-blocks", "mxfp4"}) {
    const std::string folder = "../formats/quantized/" + name;
    expect_both(mutate(folder, "config.json", SIZE_MAX, 15, 300));
    expect_both(mutate(folder, "model.safetensors", 2300, 16, 400));
    const TinyModel model(folder);
    const auto run = [&] { run_three_tokens(textbook_engine(model.folder())); };
    const auto file = model.file("model.safetensors");
    EXPECT_GT(mutate_file(file, SIZE_MAX, 17, 100, run, true).ran, 10u);
  }
}

constexpr std::size_t kGgufHead = 2800;  // about: pairs and tensor entries of whole.gguf

TEST(Mutation, OfAGgufFileIsRefusedOrRuns) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "model.gguf";
  write_file(file, read_file(TEST_DATA "/gguf/whole.gguf"));
  expect_both(
      mutate_file(file, kGgufHead, 7, 1500, [&] { run_three_tokens(textbook_engine(file)); }));
}

TEST(Mutation, OfAVocabularyInAGgufFileIsRefusedOrRuns) {
  for (const std::string name :
       {"tokenizer-gemma4", "tokenizer-llama2", "tokenizer-qwen2", "whole"}) {
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "model.gguf";
    write_file(file, read_file(TEST_DATA "/gguf/" + name + ".gguf"));
    expect_both(mutate_file(file, SIZE_MAX, 8, 700, [&] {
      const Tokenizer tokenizer = Tokenizer::open(file);
      tokenizer.decode(tokenizer.encode("The cat and the  dog \xc3\xa9", {.add_special = true}));
    }));
  }
}

TEST(Mutation, OfALlama2cHeaderIsRefusedOrRuns) {
  for (const std::string name : {"llama2c-v0.bin", "llama2c-v2.bin"}) {
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "model.bin";
    write_file(file, read_file(TEST_DATA "/formats/" + name));
    const auto run = [&] { run_three_tokens(textbook_engine(file)); };
    expect_both(mutate_file(file, 60, 9, 300, run, true));
    EXPECT_GT(mutate_file(file, 300, 13, 300, run).refused, 200u);
  }
}

TEST(Mutation, OfATokenizerBinIsRefusedOrRuns) {
  for (const std::string name : {"tokenizer-angles.bin", "tokenizer-bytes.bin"}) {
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "tokenizer.bin";
    write_file(file, read_file(TEST_DATA "/formats/" + name));
    expect_both(mutate_file(file, SIZE_MAX, 10, 500, [&] {
      const Tokenizer tokenizer = Tokenizer::open(file);
      tokenizer.decode(tokenizer.encode("The cat and the  dog \xc3\xa9", {.add_special = true}));
    }));
  }
}

TEST(Mutation, OfAFlmFileIsRefusedOrRuns) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "model.flm";
  write_file(file, read_file(TEST_DATA "/formats/story.flm"));
  expect_both(mutate_file(
      file, 900, 11, 300, [&] { run_three_tokens(textbook_engine(file)); }, true));
  const auto encode = [&] {
    const Tokenizer tokenizer = Tokenizer::open(file);
    tokenizer.decode(tokenizer.encode("The cat and the  dog \xc3\xa9", {.add_special = true}));
  };
  expect_both(mutate_file(file, 18'000, 12, 500, encode, true));
  EXPECT_GT(mutate_file(file, 18'000, 14, 300, encode).refused, 100u);
}

}  // namespace
}  // namespace stagecraft

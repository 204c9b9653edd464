// The error message for wrong files of llama2.c and FastLLM.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>
#include <ostream>

#include "base/error.h"
#include "model/architectures/architectures.h"
#include "tests/hostile/raw_gguf.h"
#include "tests/hostile/rows.h"
#include "tests/hostile/run_limited.h"
#include "tests/support/engines.h"
#include "tests/support/temporary_folder.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

// A row: the bytes of a file, and the message after "FILE: ".
struct BadFile {
  std::string name;
  std::function<std::string()> bytes;
  std::string message;
};

void PrintTo(const BadFile& row, std::ostream* out) { *out << row.name; }

std::string fixture(const std::string& name) { return read_file(TEST_DATA "/formats/" + name); }

std::string f32_bytes(float value) { return f32(value).substr(4); }

// The message of the Error that `open` throws, without the file's path; "" if it throws none.
std::string refusal(const std::filesystem::path& file, const std::function<void()>& open) {
  try {
    open();
  } catch (const Error& error) {
    std::string message = error.what();
    const std::string start = file.string() + ": ";
    EXPECT_TRUE(message.starts_with(start)) << message;
    return message.substr(std::min(start.size(), message.size()));
  }
  return "";
}

// ---- models of llama2.c -------------------------------------------------------------------------

// A correct file with one number of its header replaced: 0 is dim, 1 hidden_dim, 2 n_layers, 3
// n_heads, 4 n_kv_heads, 5 vocab_size, 6 max_seq_len.
std::function<std::string()> v0(std::size_t field, std::int32_t value) {
  return [=] {
    return fixture("llama2c-v0.bin")
        .replace(4 * field, 4, u32_bytes(static_cast<std::uint32_t>(value)));
  };
}
std::function<std::string()> patched(std::string file, std::size_t at, std::string bytes) {
  return [=] { return fixture(file).replace(at, bytes.size(), bytes); };
}
std::function<std::string()> of(std::string bytes) {
  return [=] { return bytes; };
}
std::function<std::string()> cut(std::string file, std::size_t less) {
  return [=] {
    std::string bytes = fixture(file);
    bytes.resize(bytes.size() - less);
    return bytes;
  };
}

const std::string kNone = ": this is not a llama2.c file";
const BadFile kBadModels[] = {
    {"is_empty", of(""), "dim: expected 4 bytes, found 0: the file is cut short or damaged"},
    {"ends_in_the_header", of(u32_bytes(24) + u32_bytes(37)),
     "n_layers: expected 4 bytes, found 0: the file is cut short or damaged"},
    {"has_zeros_only", of(std::string(28, '\0')),
     "'dim': expected a whole number from 1 to 4194304, found 0" + kNone},
    {"has_a_negative_dim", v0(0, -24),
     "'dim': expected a whole number from 1 to 4194304, found -24" + kNone},
    {"has_a_dim_beyond_any", v0(0, 1 << 23),
     "'dim': expected a whole number from 1 to 4194304, found 8388608" + kNone},
    {"has_a_dim_that_heads_do_not_divide", v0(0, 25),
     "'dim': expected an even number of columns for each of 4 heads, found 25"},
    {"has_heads_of_an_odd_size", v0(3, 8),
     "'dim': expected an even number of columns for each of 8 heads, found 24"},
    {"has_5000_layers", v0(2, 5000),
     "'n_layers': expected a whole number from 1 to 4096, found 5000" + kNone},
    {"has_no_heads", v0(3, 0),
     "'n_heads': expected a whole number from 1 to 4194304, found 0" + kNone},
    {"has_kv_heads_that_do_not_divide_heads", v0(4, 3),
     "'n_heads': expected a multiple of 'n_kv_heads' 3, found 4"},
    {"has_no_vocabulary", v0(5, 0),
     "'vocab_size': expected plus or minus 1 to 4194304, found 0" + kNone},
    {"has_the_most_negative_vocabulary", v0(5, std::numeric_limits<std::int32_t>::min()),
     "'vocab_size': expected plus or minus 1 to 4194304, found -2147483648" + kNone},
    {"has_no_context", v0(6, 0),
     "'max_seq_len': expected a whole number from 1 to 4194304, found 0" + kNone},
    {"says_tied_and_is_not", v0(5, 65),
     "expected 43420 bytes, as a llama2.c file of version 0 with these sizes has, found 49660"},
    {"claims_more_than_the_file_has", v0(1, 4'000'000),
     "expected 2304028348 bytes, as a llama2.c file of version 0 with these sizes has, found "
     "49660"},
    {"is_cut_by_a_byte", cut("llama2c-v0.bin", 1),
     "expected 49660 bytes, as a llama2.c file of version 0 with these sizes has, found 49659"},
    {"has_a_byte_more", [] { return fixture("llama2c-v0.bin") + "x"; },
     "expected 49660 bytes, as a llama2.c file of version 0 with these sizes has, found 49661"},
    {"is_of_version_3", patched("llama2c-v1.bin", 4, u32_bytes(3)),
     "version: expected 1 or 2, found 3"},
    {"is_of_version_0_with_a_magic", patched("llama2c-v1.bin", 4, u32_bytes(0)),
     "version: expected 1 or 2, found 0"},
    {"has_a_negative_vocabulary_in_version_1", patched("llama2c-v1.bin", 28, u32_bytes(0u - 65u)),
     "'vocab_size': expected 1 to 4194304, found -65" + kNone},
    {"has_a_flag_that_is_2", patched("llama2c-v1.bin", 36, "\x02"),
     "'shared_classifier': expected 0 or 1, found 2"},
    {"is_cut_in_version_2", cut("llama2c-v2.bin", 4),
     "expected 14336 bytes, as a llama2.c file of version 2 with these sizes has, found 14332"},
    {"has_no_groups", patched("llama2c-v2.bin", 37, u32_bytes(0)),
     "'group_size': expected a whole number from 1 to 4194304, found 0" + kNone},
    {"has_groups_of_7", patched("llama2c-v2.bin", 37, u32_bytes(7)),
     "'group_size': expected a divisor of dim 24 and hidden_dim 36, found 7"},
    {"has_the_magic_only", of(u32_bytes(0x616b3432)),
     "version: expected 4 bytes, found 0: the file is cut short or damaged"},
    {"is_a_pickle", of("\x80\x02}q\x01."),
     "expected a llama2.c file, found a Python pickle, which this engine does not run"},
    {"is_a_zipped_pickle", of("PK\x03\x04 archive/data.pkl"),
     "expected a llama2.c file, found a Python pickle, which this engine does not run"},
    {"is_a_git_lfs_pointer", of("version https://git-lfs.github.com/spec/v1\noid sha256:0"),
     "is a Git LFS pointer, not the file itself: fetch it with 'git lfs pull'"},
};

class BadLlama2c : public testing::TestWithParam<BadFile> {};
INSTANTIATE_TEST_SUITE_P(Model, BadLlama2c, testing::ValuesIn(kBadModels), row_name);

TEST_P(BadLlama2c, IsRefusedInOneLineThatSaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "model.bin";
  write_file(file, GetParam().bytes());
  EXPECT_EQ(refusal(file, [&] { textbook_engine(file); }), GetParam().message);
  EXPECT_NE(refusal(file, [&] { Tokenizer::open(file); }), "");
}

// ---- tokenizer.bin ------------------------------------------------------------------------------

std::string token(std::string_view text, float score = 0.0f) {
  return f32_bytes(score) + u32_bytes(static_cast<std::uint32_t>(text.size())) + std::string(text);
}
const std::string kStart =
    u32_bytes(400) + token("<unk>") + token("\n<s>\n") + token("\n</s>\n") + token("a");

const BadFile kBadVocabularies[] = {
    {"is_empty", of(""),
     "longest token: expected 4 bytes, found 0: the file is cut short or damaged"},
    {"has_a_longest_token_of_0", of(u32_bytes(0)),
     "longest token: expected a length of at least 1, found 0"},
    {"has_a_negative_longest_token", of(u32_bytes(0xffffffff)),
     "longest token: expected a length of at least 1, found -1"},
    {"has_no_tokens", of(u32_bytes(4)), "expected at least 3 tokens, found 0"},
    {"ends_in_a_score", of(kStart + "abc"),
     "token 4: expected 4 bytes, found 3: the file is cut short or damaged"},
    {"ends_in_a_text", of(kStart + f32_bytes(0) + u32_bytes(100) + "abc"),
     "token 4: expected 100 bytes, found 3: the file is cut short or damaged"},
    {"has_a_negative_length", of(kStart + f32_bytes(0) + u32_bytes(0u - 5u)),
     "token 4: expected a length from 0 to 400 (the longest token), found -5"},
    {"has_a_token_longer_than_the_longest", of(u32_bytes(6) + token("<unk>") + token("longest")),
     "token 1: expected a length from 0 to 6 (the longest token), found 7"},
    {"has_a_token_that_is_not_utf8", of(kStart + token("a\xff")),
     "token 4: expected UTF-8, found 'a\\xff'"},
    {"has_a_score_that_is_no_number",
     of(kStart + token("b", std::numeric_limits<float>::quiet_NaN())),
     "token 4: expected a number, found nan"},
    {"has_an_empty_begin_token", of(u32_bytes(9) + token("<unk>") + token("\n\n") + token("</s>")),
     "token 1: expected a text, found none"},
    {"has_a_token_of_300_bytes", of(kStart + token(std::string(300, 'a'))),
     "token 4: expected at most 256 bytes, found 300"},
    {"has_a_token_twice", of(kStart + token("ab") + token("ab")),
     "tokenizer: 'model.vocab.ab' is given twice"},
};

class BadTokenizerBin : public testing::TestWithParam<BadFile> {};
INSTANTIATE_TEST_SUITE_P(Vocabulary, BadTokenizerBin, testing::ValuesIn(kBadVocabularies),
                         row_name);

TEST_P(BadTokenizerBin, IsRefusedInOneLineThatSaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "tokenizer.bin";
  write_file(file, GetParam().bytes());
  EXPECT_EQ(refusal(file, [&] { Tokenizer::open(file); }), GetParam().message);
}

TEST(BadTokenizerBinOfAModel, HasAsManyTokensAsTheModel) {
  const TemporaryFolder folder;
  write_file(folder.path() / "m.bin", fixture("llama2c-v0.bin"));
  write_file(folder.path() / "tokenizer.bin", kStart);
  EXPECT_EQ(
      refusal(folder.path() / "tokenizer.bin", [&] { Tokenizer::open(folder.path() / "m.bin"); }),
      "expected 65 tokens, found 4");
}

// ---- .flm ---------------------------------------------------------------------------------------

// The parts of a correct small file. bytes() writes the file after a test has broken one part.
struct RawFlm {
  struct Token {
    std::vector<std::uint32_t> bytes;
    std::uint32_t id;
  };
  struct Tensor {
    std::string name;
    std::vector<std::uint32_t> sizes;
    std::uint32_t type = 0;
    std::string data;
  };
  std::uint32_t version = 2;
  std::optional<std::uint32_t> n_pairs, n_tokens, n_tensors;  // instead of the true counts
  std::vector<std::pair<std::string, std::string>> pairs = {{"model_type", "llama"}};
  std::vector<Token> tokens = {{{'a'}, 0}, {{'b'}, 1}};
  std::vector<Tensor> tensors = {{"model.norm.weight", {2}, 0, std::string(8, '\0')}};

  static std::string text(std::string_view value) {
    return u32_bytes(static_cast<std::uint32_t>(value.size())) + std::string(value);
  }
  static std::string size(std::size_t value) {
    return u32_bytes(static_cast<std::uint32_t>(value));
  }
  std::string bytes() const {
    std::string out = u32_bytes(version) + u32_bytes(n_pairs.value_or(pairs.size()));
    for (const auto& [key, value] : pairs) out += text(key) + text(value);
    out += u32_bytes(n_tokens.value_or(tokens.size()));
    for (const Token& token : tokens) {
      out += size(token.bytes.size());
      for (const std::uint32_t byte : token.bytes) out += u32_bytes(byte);
      out += u32_bytes(token.id);
    }
    out += u32_bytes(n_tensors.value_or(tensors.size()));
    for (const Tensor& tensor : tensors) {
      out += text(tensor.name) + size(tensor.sizes.size());
      for (const std::uint32_t n : tensor.sizes) out += u32_bytes(n);
      out += u32_bytes(tensor.type) + tensor.data;
    }
    return out;
  }
};

std::function<std::string()> flm(std::function<void(RawFlm&)> how) {
  return [=] {
    RawFlm file;
    how(file);
    return file.bytes();
  };
}
std::function<std::string()> tensor(std::function<void(RawFlm::Tensor&)> how) {
  return flm([=](RawFlm& file) { how(file.tensors[0]); });
}

const std::string kInt = "expected a whole number from 0 to 2147483647, found ";
const BadFile kBadFlms[] = {
    {"is_empty", of(""), "version: expected 4 bytes, found 0: the file is cut short or damaged"},
    {"is_of_version_1", flm([](RawFlm& file) { file.version = 1; }),
     "version: expected 2, found 1"},
    {"claims_less_than_no_pairs", flm([](RawFlm& file) { file.n_pairs = 0xffffffff; }),
     "number of pairs: " + kInt + "-1"},
    {"claims_more_pairs_than_bytes", flm([](RawFlm& file) { file.n_pairs = 0x7fffffff; }),
     "'\\x01\\x00': expected 6356992 bytes, found 63: the file is cut short or damaged"},
    {"has_a_key_beyond_the_end", of(u32_bytes(2) + u32_bytes(1) + u32_bytes(1000) + "key"),
     "key 0: expected 1000 bytes, found 3: the file is cut short or damaged"},
    {"has_a_key_twice", flm([](RawFlm& file) {
       file.pairs.push_back({"model_type", "qwen2"});
     }),
     "'model_type' is given twice"},
    {"has_a_key_that_is_not_utf8", flm([](RawFlm& file) { file.pairs[0].first = "k\xff"; }),
     "key 0: expected UTF-8, found 'k\\xff'"},
    {"has_a_value_that_is_not_utf8", flm([](RawFlm& file) { file.pairs[0].second = "v\xff"; }),
     "'model_type': expected UTF-8, found 'v\\xff'"},
    {"has_scores", flm([](RawFlm& file) {
       file.pairs.push_back({"tokenizer_use_score", "1"});
     }),
     "'tokenizer_use_score': expected 0, found '1' (the data that it adds is not supported)"},
    {"has_a_byte_of_256", flm([](RawFlm& file) { file.tokens[1].bytes = {256}; }),
     "token 1: byte: expected a whole number from 0 to 255, found 256"},
    {"has_a_negative_byte", flm([](RawFlm& file) { file.tokens[1].bytes = {0xffffffe2}; }),
     "token 1: byte: expected a whole number from 0 to 255, found -30"},
    {"has_a_negative_id", flm([](RawFlm& file) { file.tokens[1].id = 0xffffffff; }),
     "token 1: id: " + kInt + "-1"},
    {"claims_a_token_longer_than_the_file",
     of(u32_bytes(2) + u32_bytes(0) + u32_bytes(1) + u32_bytes(0x7fffffff) + u32_bytes('a')),
     "token 0: byte: expected 4 bytes, found 0: the file is cut short or damaged"},
    {"claims_more_tokens_than_bytes", flm([](RawFlm& file) { file.n_tokens = 0x7fffffff; }),
     "token 3: byte: expected a whole number from 0 to 255, found 1999531378"},
    {"claims_more_tensors_than_there_are", flm([](RawFlm& file) { file.n_tensors = 2; }),
     "tensor 1: expected 4 bytes, found 0: the file is cut short or damaged"},
    {"claims_fewer_tensors", flm([](RawFlm& file) { file.n_tensors = 0; }),
     "expected 63 bytes, as its weights need, found 104"},
    {"has_a_tensor_without_a_name", tensor([](auto& t) { t.name = ""; }),
     "tensor 0: expected a name of 1 to 1024 bytes, found 0"},
    {"has_a_tensor_of_no_dimensions", tensor([](auto& t) { t.sizes = {}; }),
     "tensor 'model.norm.weight': dimensions: expected a whole number from 1 to 4, found 0"},
    {"has_a_tensor_of_5_dimensions", tensor([](auto& t) {
       t.sizes = {2, 1, 1, 1, 1};
     }),
     "tensor 'model.norm.weight': dimensions: expected a whole number from 1 to 4, found 5"},
    {"has_a_size_of_0", tensor([](auto& t) { t.sizes = {0}; }),
     "tensor 'model.norm.weight': size: expected a whole number from 1 to 2147483647, found 0"},
    {"has_sizes_that_multiply_past_64_bits", tensor([](auto& t) {
       t.sizes = {0x7fffffff, 0x7fffffff, 0x7fffffff};
     }),
     "tensor 'model.norm.weight': [2147483647, 2147483647, 2147483647] takes more bytes than 64 "
     "bits can count"},
    {"has_a_tensor_of_int8", tensor([](auto& t) { t.type = 3; }),
     "tensor 'model.norm.weight': type 3 is not supported (only 0, f32, and 7, f16)"},
    {"has_less_data_than_a_tensor_needs", tensor([](auto& t) { t.sizes = {200}; }),
     "tensor 'model.norm.weight': expected 800 bytes, found 8: the file is cut short or damaged"},
    {"has_a_tensor_twice", flm([](RawFlm& file) { file.tensors.push_back(file.tensors[0]); }),
     "tensor 'model.norm.weight' is given twice"},
    {"has_a_byte_more", [] { return RawFlm().bytes() + "x"; },
     "expected 104 bytes, as its weights need, found 105"},
    {"says_nothing_of_its_sizes", flm([](RawFlm&) {}), "pairs: 'vocab_size' is missing"},
    {"is_of_another_architecture", flm([](RawFlm& file) { file.pairs[0].second = "baichuan"; }),
     "pairs: 'model_type': expected " + known_model_types() + ", found 'baichuan'"},
    {"changes_the_arithmetic", flm([](RawFlm& file) {
       file.pairs.push_back({"logit_scale", "0.5"});
     }),
     "pairs: 'logit_scale': 0.5 is not supported"},
};

class BadFlm : public testing::TestWithParam<BadFile> {};
INSTANTIATE_TEST_SUITE_P(Model, BadFlm, testing::ValuesIn(kBadFlms), row_name);

TEST_P(BadFlm, IsRefusedInOneLineThatSaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "model.flm";
  write_file(file, GetParam().bytes());
  EXPECT_EQ(refusal(file, [&] { textbook_engine(file); }), GetParam().message);
}

const BadFile kBadFlmVocabularies[] = {
    {"has_no_tokens", flm([](RawFlm& file) { file.tokens = {}; }),
     "expected a vocabulary, found none"},
    {"has_an_id_far_beyond_the_others", flm([](RawFlm& file) { file.tokens[1].id = 70'000; }),
     "token 1: expected an id below 65540 (for 2 tokens), found 70000"},
    {"has_an_id_twice", flm([](RawFlm& file) { file.tokens[1].id = 0; }),
     "token 1: expected a unique id, found 0, which 'a' also has"},
    {"has_a_token_that_is_not_utf8", flm([](RawFlm& file) { file.tokens[1].bytes = {0xff}; }),
     "token 1: expected UTF-8, found '\\xff'"},
    {"has_a_token_twice", flm([](RawFlm& file) { file.tokens[1].bytes = {'a'}; }),
     "tokenizer: 'model.vocab.a' is given twice"},
    {"has_a_token_of_2000_bytes", flm([](RawFlm& file) { file.tokens[1].bytes.assign(2000, 'x'); }),
     "tokenizer: model: expected tokens of at most 1024 bytes, found one of 2000"},
};

class BadFlmVocabulary : public testing::TestWithParam<BadFile> {};
INSTANTIATE_TEST_SUITE_P(Vocabulary, BadFlmVocabulary, testing::ValuesIn(kBadFlmVocabularies),
                         row_name);

TEST_P(BadFlmVocabulary, IsRefusedInOneLineThatSaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "model.flm";
  write_file(file, GetParam().bytes());
  EXPECT_EQ(refusal(file, [&] { Tokenizer::open(file); }), GetParam().message);
}

// A large number in a file costs neither memory nor time.
TEST(BadOtherFormats, AreRefusedInLittleMemory) {
  const TemporaryFolder folder;
  write_file(folder.file("a.bin"), v0(1, 4'000'000)());
  write_file(folder.file("a.flm"), flm([](RawFlm& file) { file.n_tokens = 0x7fffffff; })());
  for (const char* name : {"a.bin", "a.flm"}) {
    const LimitedRun run = run_limited({"story", "--model", folder.file(name)});
    EXPECT_EQ(run.code, 1) << run.ended_by << run.err;
    EXPECT_TRUE(run.err.starts_with("stagecraft: " + folder.file(name))) << run.err;
  }
}

}  // namespace
}  // namespace stagecraft

// The gates of stage 7: the forward pass, the choice of a token, the loop.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "checkpoint/safetensors.h"
#include "course/judge/kept_requests.h"
#include "course/judge/messages.h"
#include "course/judge/paths.h"
#include "course/worker/numbers_taken.h"
#include "generation/generate.h"
#include "model/forward.h"
#include "tests/gates/questions.h"
#include "tests/support/engines.h"
#include "tests/support/random_model.h"

namespace stagecraft::stages {
namespace {

// ---- forward ------------------------------------------------------------------------------------

// PyTorch's logits of a tiny model, [seq, vocab] in f64, and the allowed error.
struct DumpedLogits {
  std::string model;
  std::vector<int> ids;
  std::size_t vocab_size = 0;
  std::vector<double> logits;
  double allowed = 0.0;
};

DumpedLogits dumped_logits(const std::string& name) {
  DumpedLogits dump;
  dump.model = (test_data() / "models" / name).string();
  const SafetensorsFile file(dump.model + "/trace.safetensors");
  const StoredTensor& ids = *file.find("ids");
  for (std::size_t i = 0; i < ids.shape[0]; ++i) {
    std::int64_t id = 0;
    std::memcpy(&id, ids.bytes.data() + i * sizeof id, sizeof id);
    dump.ids.push_back(static_cast<int>(id));
  }
  const StoredTensor& logits = *file.find("logits");
  dump.vocab_size = logits.shape[1];
  dump.logits.resize(logits.bytes.size() / sizeof(double));
  std::memcpy(dump.logits.data(), logits.bytes.data(), logits.bytes.size());
  dump.allowed = nlohmann::json::parse(file.metadata().at("tolerance")).at("logits");
  return dump;
}

// Asks for `rows` rows of logits per pass. The cache has room for more than the text, so that code
// with a wrong position does not end there.
Case forward_case(const DumpedLogits& dump, const std::vector<int>& pieces,
                  const std::vector<int>& rows) {
  Case one;
  one.name =
      fmt::format("{} in passes of {}", std::filesystem::path(dump.model).filename().string(),
                  fmt::join(pieces, ", "));
  one.request.function = "forward";
  one.request.texts = {{"model", dump.model}};
  one.request.inputs = {
      {"ids", numbers(dump.ids)}, {"pieces", numbers(pieces)}, {"logit_rows", numbers(rows)}};
  one.request.scalars = {{"capacity", static_cast<double>(8 * dump.ids.size())}};
  std::size_t end = 0;
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    end += static_cast<std::size_t>(pieces[n]);
    const auto kept = static_cast<std::size_t>(rows[n]);
    const auto first =
        dump.logits.begin() + static_cast<std::ptrdiff_t>((end - kept) * dump.vocab_size);
    Expected& expected = one.expected[fmt::format("logits of pass {}", n)];
    expected.shape = {kept, dump.vocab_size};
    expected.values.assign(first, first + static_cast<std::ptrdiff_t>(kept * dump.vocab_size));
    expected.allowed.assign(expected.values.size(), dump.allowed);
  }
  one.expected["positions in the cache"] = exactly({static_cast<int>(end)});
  one.describe = [end](const std::string& output, const Tensor& got) -> std::string {
    if (output != "positions in the cache" || got.values.empty()) return {};
    return say("positions_wrong", end, got.values[0]);
  };
  return one;
}

// True if it refuses the second of two passes and does not change the cache.
bool judge_refused_pass(const std::string& name, const DumpedLogits& dump,
                        const std::vector<int>& ids, std::size_t capacity) {
  const std::vector<int> pieces = {3, static_cast<int>(ids.size()) - 3};
  Case one = forward_case(dump, pieces, {0, 1});
  one.name = name;
  one.request.inputs["ids"] = numbers(ids);
  one.request.inputs["refusable"] = numbers({1});
  one.request.scalars["capacity"] = static_cast<double>(capacity);
  one.expected = {{"Error", exactly({1})}, {"positions in the cache", exactly({3})}};
  one.describe = [](const std::string& output, const Tensor&) {
    return output == "Error" ? say("not_refused") : say("changed_by_refusal", output);
  };
  return judge(one);
}

TEST(Forward, EqualsPyTorchOnAWholePrompt) {
  for (const char* name :
       {"llama-mha", "llama-gqa3", "llama-large-eps", "llama-tied-embed-only", "qwen3-qk-norm"}) {
    const DumpedLogits dump = dumped_logits(name);
    const int seq_len = static_cast<int>(dump.ids.size());
    if (!judge(forward_case(dump, {seq_len}, {seq_len}))) return;
  }
}

TEST(Forward, GivesTheLogitsOfTheLastRowsAlone) {
  const DumpedLogits dump = dumped_logits("llama-gqa2");
  const int seq_len = static_cast<int>(dump.ids.size());
  if (!judge(forward_case(dump, {seq_len}, {1}))) return;
  judge(forward_case(dump, {seq_len}, {3}));
}

TEST(Forward, GoesOnFromTheCacheHoweverThePromptIsCut) {
  const DumpedLogits dump = dumped_logits("llama-gqa2");
  const int seq_len = static_cast<int>(dump.ids.size());
  const std::vector<int> ones(dump.ids.size(), 1);
  if (!judge(forward_case(dump, ones, ones))) return;
  if (!judge(forward_case(dump, {3, seq_len - 3}, {1, 1}))) return;
  judge(forward_case(dump, {seq_len - 1, 1}, {0, 1}));
}

// A model that is in no file of the course, so that nobody can know its logits. The expected logits
// are those of our own forward in f32. The tolerance is a few times that of the dumps, which is
// 3e-6 to 5e-6 of the largest logit.
DumpedLogits fresh_logits(Inputs& inputs) {
  RandomModelSizes sizes;
  sizes.vocab_size = inputs.size(40, 90);
  sizes.dim = 24;
  sizes.ffn_dim = inputs.odd_size(30, 50);
  sizes.n_layers = 3;  // the dumped models have two
  sizes.gain = 0.3f;
  sizes.seed = static_cast<unsigned>(inputs.size(0, 1u << 30));
  const std::filesystem::path folder = folder_for_files("random-weights");
  write_random_model(folder, sizes);
  DumpedLogits fresh;
  fresh.model = folder.string();
  fresh.vocab_size = sizes.vocab_size;
  for (std::size_t n = inputs.size(6, 9); n > 0; --n) {
    fresh.ids.push_back(static_cast<int>(inputs.size(0, sizes.vocab_size - 1)));
  }
  const CourseModel file(folder);
  KvCache cache(file.model.config, fresh.ids.size());
  Workspace workspace(file.model.config, fresh.ids.size(), fresh.ids.size(), 1);
  Matrix<float> logits(fresh.ids.size(), fresh.vocab_size);
  forward(file.model, fresh.ids, cache, workspace, logits.view());
  double largest = 0.0;
  for (std::size_t i = 0; i < logits.rows() * logits.cols(); ++i) {
    fresh.logits.push_back(logits.data()[i]);
    largest = std::max(largest, std::fabs(fresh.logits.back()));
  }
  fresh.allowed = 2e-5 * largest;
  return fresh;
}

TEST(Forward, ComputesAModelThatNobodyHasSeen) {
  Inputs inputs;
  const DumpedLogits fresh = fresh_logits(inputs);
  const int seq_len = static_cast<int>(fresh.ids.size());
  if (!judge(forward_case(fresh, {seq_len}, {seq_len}))) return;
  judge(forward_case(fresh, {3, seq_len - 3}, {1, 1}));
}

TEST(Forward, KeepsNothingOfAnotherModel) {
  Inputs inputs;
  std::vector<Case> cases;
  for (const char* name : {"llama-gqa2", "qwen3-qk-norm", "llama-mha"}) {
    const DumpedLogits dump = dumped_logits(name);
    const int seq_len = static_cast<int>(dump.ids.size());
    cases.push_back(forward_case(dump, {seq_len}, {2}));
  }
  const DumpedLogits fresh = fresh_logits(inputs);
  cases.push_back(forward_case(fresh, {static_cast<int>(fresh.ids.size())}, {2}));
  judge(in_turn("one model after the other", cases));
}

TEST(Forward, FillsTheCacheToItsLastPosition) {
  const DumpedLogits dump = dumped_logits("llama-gqa2");
  const int seq_len = static_cast<int>(dump.ids.size());
  for (const std::vector<int>& pieces : {std::vector<int>{seq_len}, {3, seq_len - 3}}) {
    Case one = forward_case(dump, pieces, std::vector<int>(pieces.size(), 1));
    one.name += ", which fill the cache";
    one.request.scalars["capacity"] = static_cast<double>(seq_len);
    judge(one);
  }
}

TEST(Forward, RefusesWhatItHasNoRowOrNoRoomForAndLeavesTheCacheAsItWas) {
  const DumpedLogits dump = dumped_logits("llama-gqa2");
  const int vocab_size = static_cast<int>(dump.vocab_size);
  const std::size_t room = 8;
  if (!judge_refused_pass("a token one beyond the vocabulary", dump, {1, 2, 3, 4, vocab_size},
                          room)) {
    return;
  }
  if (!judge_refused_pass("the token -1", dump, {1, 2, 3, -1, 5}, room)) return;
  judge_refused_pass("five tokens, but room for four", dump, {1, 2, 3, 4, 5}, 4);
}

// ---- sample -------------------------------------------------------------------------------------

constexpr std::size_t kSweep = 4000;
// Its ids need more than 16 bits. Only where no list is sorted: some sort in quadratic time.
constexpr std::size_t kLargeVocabulary = 66'001;

// The probability of each token according to the contract, in f64.
std::vector<double> shares(const Tensor& logits, double temperature, std::size_t top_k,
                           double top_p) {
  std::vector<std::size_t> order(logits.values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return logits.values[a] > logits.values[b];
  });
  if (top_k != 0 && top_k < order.size()) order.resize(top_k);
  std::vector<double> result(logits.values.size(), 0.0);
  double sum = 0.0;
  for (const std::size_t i : order) {
    result[i] = std::exp((logits.values[i] - logits.values[order[0]]) / temperature);
    sum += result[i];
  }
  double kept = 0.0;
  for (const std::size_t i : order) {
    const bool enough = top_p < 1.0 && kept >= top_p * sum;
    if (enough) result[i] = 0.0;
    kept += result[i];
  }
  for (double& share : result) share /= kept;
  return result;
}

Case sample_case(const std::string& name, const Tensor& logits, double temperature,
                 std::size_t top_k, double top_p) {
  Case one;
  one.name = name;
  one.request.function = "sample";
  Tensor us{{kSweep}, {}};
  for (std::size_t i = 0; i < kSweep; ++i) {
    us.values.push_back((static_cast<float>(i) + 0.5f) / static_cast<float>(kSweep));
  }
  one.request.inputs = {{"logits", logits}, {"u", us}};
  one.request.scalars = {
      {"temperature", temperature}, {"top_k", static_cast<double>(top_k)}, {"top_p", top_p}};
  return one;
}

// The tokens, the likeliest first.
std::vector<std::size_t> in_order(const std::vector<double>& shares) {
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  return order;
}

// The token for each u: the probabilities side by side, likeliest first. If u is so close to a
// boundary that rounding decides, any token is right.
// rounding: the relative error of a probability in f32.
Expected draws(const Tensor& us, const std::vector<double>& shares, double rounding = 1e-5) {
  const std::vector<std::size_t> order = in_order(shares);
  Expected expected{{us.values.size()}, {}, {}, true};
  std::size_t rank = 0;
  double begin = 0.0;
  for (const double u : us.values) {
    while (rank + 1 < order.size() && u >= begin + shares[order[rank]]) {
      begin += shares[order[rank++]];
    }
    const double end = begin + shares[order[rank]];
    const bool close = u - begin < rounding || end - u < rounding;
    expected.values.push_back(static_cast<double>(order[rank]));
    expected.allowed.push_back(close ? static_cast<double>(shares.size()) : 0.0);
  }
  return expected;
}

// Describes the first wrong token. order: the tokens, the likeliest first.
std::string diagnose_draws(const Tensor& us, const std::vector<std::size_t>& order,
                           const Expected& drawn, const Tensor& got) {
  if (got.values.size() != drawn.values.size()) return {};
  std::vector<std::ptrdiff_t> ranks;
  for (const float token : got.values) {
    ranks.push_back(std::ranges::find(order, static_cast<std::size_t>(token)) - order.begin());
  }
  std::size_t i = 0;
  while (std::fabs(got.values[i] - drawn.values[i]) <= drawn.allowed[i]) ++i;
  return say(std::ranges::is_sorted(ranks) ? "draw_shifted" : "draw_wrong", us.values[i],
             drawn.values[i], got.values[i]);
}

// Sweeps u through [0, 1): first compares how often each token is chosen, then the order.
bool judge_shares(const std::string& name, const Tensor& logits, double temperature,
                  std::size_t top_k, double top_p) {
  Case one = sample_case(name, logits, temperature, top_k, top_p);
  const std::vector<double> expected = shares(logits, temperature, top_k, top_p);
  if (!judge_counts(one, "tokens", expected, kSweep)) return false;
  // A logit that is divided by another temperature than 1 is rounded once more.
  const double largest = std::fabs(*std::ranges::max_element(logits.values, {}, [](float logit) {
    return std::isfinite(logit) ? std::fabs(logit) : 0.0f;
  }));
  const double division = temperature == 1.0 ? 0.0 : 4.0 * 0x1p-24 * largest / temperature;
  const Expected drawn = draws(one.request.inputs["u"], expected, std::max(1e-5, division));
  one.expected = {{"tokens", drawn}};
  one.describe = [us = one.request.inputs["u"], order = in_order(expected), drawn](
                     const std::string&, const Tensor& got) {
    return diagnose_draws(us, order, drawn, got);
  };
  return judge(one);
}

std::vector<float> largest_at_the_end() {
  std::vector<float> logits = Inputs().tensor({kLargeVocabulary}).values;
  logits.back() = 20.0f;
  return logits;
}

TEST(Sample, TakesTheLargestAtTemperatureZeroAndTheLowerOfEquals) {
  const std::pair<std::vector<float>, int> kLargest[] = {
      {{0.5f, 3.0f, -1.0f, 3.0f, 2.9f}, 1},
      {{4.0f, -2.0f, 4.0f, 4.0f}, 0},
      {{-5.0f, -3.0f, -0.5f, -8.0f, -2.0f, -9.0f}, 2},
      {{-INFINITY, -3.0f, -0.5f, -INFINITY}, 2},
      {largest_at_the_end(), static_cast<int>(kLargeVocabulary) - 1}};
  std::vector<Case> all;
  for (const auto& [logits, largest] : kLargest) {
    Case& one = all.emplace_back();
    one.name = fmt::format("temperature 0, {} logits", logits.size());
    one.request.function = "sample";
    one.request.inputs = {{"logits", {{logits.size()}, logits}}, {"u", {{3}, {0.0f, 0.5f, 0.99f}}}};
    one.request.scalars = {{"temperature", 0.0}, {"top_k", 3.0}, {"top_p", 0.5}};
    one.expected = {{"tokens", exactly({largest, largest, largest})}};
    judge(one);
  }
  judge(in_turn("temperature 0, one text after the other", all));
}

TEST(Sample, DrawsTheExampleByHand) {
  Case one = sample_case(kByHand, {{3}, {2.0f, 1.0f, 0.0f}}, 0.5, 0, 1.0);
  one.request.inputs["u"] = {{3}, {0.8f, 0.9f, 0.99f}};
  one.expected = {{"tokens", exactly({0, 1, 2})}};
  judge(one);
}

// Random logits. No two are so close, and no sum of the largest probabilities is so close to one of
// these p, that rounding decides which tokens are kept.
Tensor clear_logits(Inputs& inputs, std::size_t n, float scale,
                    const std::vector<std::pair<std::size_t, double>>& cuts = {}) {
  constexpr double kClear = 1e-4;
  for (int tried = 0; tried < 1000; ++tried) {
    Tensor logits = inputs.tensor({n}, scale);
    std::vector<float> sorted = logits.values;
    std::ranges::sort(sorted, std::greater<>());
    bool clear = true;
    for (std::size_t i = 1; i < n; ++i) clear &= sorted[i - 1] - sorted[i] > kClear;
    for (const auto& [top_k, p] : cuts) {
      std::vector<double> kept = shares(logits, 1.0, top_k, 1.0);
      std::ranges::sort(kept, std::greater<>());
      double sum = 0.0;
      for (const double share : kept) clear &= std::fabs((sum += share) - p) > kClear;
    }
    if (clear) return logits;
  }
  must_show(false, "logits that are clearly different");
  return {};
}

TEST(Sample, GivesEveryTokenItsShare) {
  Inputs inputs;
  // Their number is never a multiple of 4, and the last token is the likeliest: finds a wrong tail.
  Tensor logits = clear_logits(inputs, 4 * inputs.size(2, 7) + inputs.size(1, 3), 2.0f);
  std::iter_swap(std::ranges::max_element(logits.values), logits.values.end() - 1);
  if (!judge_shares("temperature 1", logits, 1.0, 0, 1.0)) return;
  if (!judge_shares("temperature 0.5", logits, 0.5, 0, 1.0)) return;
  if (!judge_shares("temperature 2", logits, 2.0, 0, 1.0)) return;
  Tensor close = logits;
  for (float& logit : close.values) logit *= 0.01f;
  if (!judge_shares("temperature 0.01, logits that are close together", close, 0.01, 0, 1.0))
    return;
  for (float& logit : logits.values) logit += 150.0f;
  if (!judge_shares("logits around 150, whose exp overflows", logits, 1.0, 0, 1.0)) return;
  if (!judge_shares("logits around 150 at temperature 0.5", logits, 0.5, 0, 1.0)) return;
  for (float& logit : logits.values) logit -= 300.0f;
  if (!judge_shares("logits around -150 at temperature 0.5", logits, 0.5, 0, 1.0)) return;
  logits.values[2] = -INFINITY;
  judge_shares("logits around -150, and one -infinity", logits, 1.0, 0, 1.0);
}

// Two equal logits give exactly 1/2 each, however it is computed.
TEST(Sample, PutsABoundaryIntoTheIntervalThatItBegins) {
  for (const float logit : {0.0f, -3.0f}) {
    Case one;
    one.name = fmt::format("u = 0.5 and two logits of {}", logit);
    one.request.function = "sample";
    one.request.inputs = {{"logits", filled({2}, logit)}, {"u", {{4}, {0.0f, 0.25f, 0.5f, 0.75f}}}};
    one.request.scalars = {{"temperature", 1.0}, {"top_k", 0.0}, {"top_p", 1.0}};
    one.expected = {{"tokens", exactly({0, 0, 1, 1})}};
    if (!judge(one)) return;
  }
}

// n equal logits and the largest u that Random gives. If n is kFew or kMore, the probabilities 1/n
// sum to less than this u in f32, also if they are scaled by their sum once more.
constexpr std::size_t kFew = 28;
constexpr std::size_t kMore = 44;
Case largest_u_case(const std::string& name, const Tensor& logits, std::size_t top_k, int last) {
  constexpr float kLargestU = 1.0f - 0x1p-24f;
  for (const std::size_t n : {kFew, kMore}) {
    float sum = 0.0f;
    for (std::size_t i = 0; i < n; ++i) sum += 1.0f / static_cast<float>(n);
    must_show(sum <= kLargestU, "a rounding");
  }
  Case one = sample_case(name, logits, 1.0, top_k, 1.0);
  one.request.inputs["u"] = {{1}, {kLargestU}};
  one.expected = {{"tokens", exactly({last})}};
  return one;
}

TEST(Sample, TakesTheLastTokenIfRoundingLeavesNone) {
  for (const std::size_t n : {kFew, kMore}) {
    judge(largest_u_case(fmt::format("{} equal logits and the largest u", n), filled({n}, 0.5f), 0,
                         static_cast<int>(n) - 1));
  }
}

bool judge_refused_logits(const std::string& name, const Tensor& logits, double temperature = 1.0) {
  Case one = sample_case(name, logits, temperature, 0, 1.0);
  one.request.inputs["u"] = {{3}, {0.0f, 0.5f, 0.99f}};
  one.request.inputs["refusable"] = numbers({1});
  one.expected = {{"Error", exactly({1})}};
  one.describe = [](const std::string&, const Tensor&) { return say("not_refused"); };
  return judge(one);
}

TEST(Sample, RefusesWhatIsNoNumber) {
  for (const float broken : {NAN, INFINITY}) {
    for (std::size_t at = 0; at < 4; ++at) {
      Tensor logits{{4}, {0.5f, 1.0f, -1.0f, 2.0f}};
      logits.values[at] = broken;
      const std::string name = fmt::format("logit {} of 4 is {}", at, broken);
      if (!judge_refused_logits(name, logits)) return;
      if (at % 2 != 0) continue;
      if (!judge_refused_logits(name + ", at temperature 0", logits, 0.0)) return;
    }
  }
  const Tensor nothing = filled({4}, -INFINITY);
  if (!judge_refused_logits("all logits are -infinity", nothing)) return;
  if (!judge_refused_logits("all logits are -infinity, at temperature 0", nothing, 0.0)) return;
  Tensor many = Inputs().tensor({kLargeVocabulary});
  many.values[kLargeVocabulary - 2] = NAN;
  judge_refused_logits(fmt::format("logit {} of {} is nan", kLargeVocabulary - 2, kLargeVocabulary),
                       many);
}

Case drawn_case(Inputs& inputs, std::size_t vocab_size, double temperature, std::size_t top_k,
                std::size_t n_draws = 40) {
  Tensor logits =
      vocab_size > 100 ? inputs.tensor({vocab_size}, 2.0f) : clear_logits(inputs, vocab_size, 2.0f);
  if (vocab_size > 100) {  // many logits: some are close together, but not those that are kept
    for (std::size_t i = 0; i < top_k; ++i) {
      logits.values[i * (vocab_size / top_k) + vocab_size / top_k - 1] =
          12.0f + 0.1f * static_cast<float>(i);
    }
  }
  Case one = sample_case("", logits, temperature, top_k, 1.0);
  Tensor& us = one.request.inputs.at("u");
  us = {{n_draws}, {}};
  for (std::size_t i = 0; i < n_draws; ++i) {
    us.values.push_back((static_cast<float>(i) + 0.3f) / static_cast<float>(n_draws));
  }
  one.expected = {{"tokens", draws(us, shares(logits, temperature, top_k, 1.0))}};
  return one;
}

TEST(SampleTopKTopP, KeepsNothing) {
  Inputs inputs;
  const std::size_t sizes[] = {6, 25, 400};
  judge_together([&](std::size_t size) {
    return drawn_case(inputs, sizes[size], 0.25 * static_cast<double>(inputs.size(2, 6)),
                      inputs.size(3, 6));
  });
}

TEST(SampleTopKTopP, TakesLargeVocabularies) {
  Inputs inputs;
  Case one = drawn_case(inputs, 8'001, 1.0, 30, 4);
  one.name = "8001 tokens, top-k 30";
  judge(one);
}

// Logits whose softmax gives these probabilities; in any order, and not near 0.
Tensor logits_of(const std::vector<double>& shares) {
  Tensor logits{{shares.size()}, {}};
  for (const double share : shares) {
    logits.values.push_back(static_cast<float>(std::log(share) + 3.0));
  }
  return logits;
}

TEST(SampleTopKTopP, DrawsTheExampleByHand) {
  Case one = sample_case(kByHand, {{3}, {2.0f, 1.0f, 0.0f}}, 1.0, 2, 0.7);
  one.request.inputs["u"] = {{1}, {0.8f}};
  one.expected = {{"tokens", exactly({0})}};
  judge(one);
}

// Two equal logits give exactly 1/2 each, so the first alone reaches p; four give 1/4 each.
TEST(SampleTopKTopP, KeepsNoMoreThanReachP) {
  Case two = sample_case("two equal logits, top_p = 0.5", filled({2}, 1.0f), 1.0, 0, 0.5);
  two.request.inputs["u"] = {{3}, {0.1f, 0.5f, 0.9f}};
  two.expected = {{"tokens", exactly({0, 0, 0})}};
  judge(two);
  Case four = sample_case("four equal logits, top_p = 0.5", filled({4}, 1.0f), 1.0, 0, 0.5);
  four.request.inputs["u"] = {{4}, {0.1f, 0.4f, 0.6f, 0.9f}};
  four.expected = {{"tokens", exactly({0, 0, 1, 1})}};
  judge(four);
}

TEST(SampleTopKTopP, TakesTheLastTokenOfTheKeptIfRoundingLeavesNone) {
  Tensor logits = filled({kFew + 12}, -60.0f);
  std::fill_n(logits.values.begin() + 3, kFew, 0.5f);
  judge(largest_u_case("top-k keeps the equal logits, the largest u", logits, kFew, kFew + 2));
}

TEST(SampleTopKTopP, KeepsTheLikeliestAtTopKOne) {
  Case one = sample_case("top_k = 1", {{4}, {0.5f, 1.0f, 3.0f, 2.0f}}, 1.0, 1, 1.0);
  one.request.inputs["u"] = {{3}, {0.0f, 0.5f, 0.9f}};
  one.expected = {{"tokens", exactly({2, 2, 2})}};
  judge(one);
}

TEST(SampleTopKTopP, KeepsTheLikeliestAtTopPZero) {
  Case one = sample_case("top_p = 0", {{4}, {0.5f, 1.0f, 3.0f, 2.0f}}, 1.0, 0, 0.0);
  one.request.inputs["u"] = {{3}, {0.1f, 0.5f, 0.9f}};
  one.expected = {{"tokens", exactly({2, 2, 2})}};
  judge(one);
}

TEST(SampleTopKTopP, CutsAndSharesTheRest) {
  Inputs inputs;
  // At temperature 0.8 the boundaries are close enough to those at 1 to be clear, too.
  const Tensor logits = clear_logits(inputs, inputs.size(12, 40), 1.5f, {{0, 0.7}, {6, 0.6}});
  if (!judge_shares("top-k 3", logits, 1.0, 3, 1.0)) return;
  if (!judge_shares("top-p 0.7", logits, 1.0, 0, 0.7)) return;
  if (!judge_shares("top-k 1000, fewer tokens", logits, 1.0, 1000, 1.0)) return;
  if (!judge_shares("top-k of all tokens", logits, 1.0, logits.values.size(), 1.0)) return;
  judge_shares("temperature 0.8, top-k 6, top-p 0.6", logits, 0.8, 6, 0.6);
}

TEST(SampleTopKTopP, TakesTopPOfWhatTopKLeaves) {
  const Tensor logits = logits_of({0.04, 0.18, 0.10, 0.26, 0.02, 0.14, 0.08, 0.12, 0.06});
  // 0.26 + 0.18 exceed 0.6 of the first four; of all tokens, only with 0.14 and 0.12 as well.
  if (!judge_shares("top-k 4, top-p 0.6", logits, 1.0, 4, 0.6)) return;
  judge_shares("top-p 0.1, which the likeliest token reaches alone", logits, 1.0, 0, 0.1);
}

TEST(SampleTopKTopP, CountsTheLowerOfEqualsAsLikelier) {
  const Tensor logits = logits_of({0.1, 0.2, 0.2, 0.05, 0.2, 0.05, 0.2});
  if (!judge_shares("top-k 2 of four equally likely tokens", logits, 1.0, 2, 1.0)) return;
  if (!judge_shares("top-p 0.5 of four equally likely tokens", logits, 1.0, 0, 0.5)) return;
  // So many that std::sort, which is not stable, changes the order of equals.
  std::vector<double> many;
  for (int i = 0; i < 40; ++i) many.push_back(0.04 - 0.01 * (i % 4));
  judge_shares("top-k 15 of 40 tokens, ten of each probability", logits_of(many), 1.0, 15, 1.0);
  judge_shares("top-p 0.56 of 40 tokens, ten of each probability", logits_of(many), 1.0, 0, 0.56);
}

// ---- generate -----------------------------------------------------------------------------------

std::filesystem::path model_of(const std::string& name, std::size_t vocab_size) {
  RandomModelSizes sizes;
  sizes.vocab_size = vocab_size;
  sizes.dim = 32;
  sizes.ffn_dim = 48;
  sizes.gain = 0.3f;
  const std::filesystem::path written = folder_for_files(name);
  write_random_model(written, sizes);
  return written;
}

// A small vocabulary, so that a text repeats itself and the penalty has an effect.
const std::filesystem::path& small_model() {
  static const std::filesystem::path folder = model_of("small model", 24);
  return folder;
}

const std::filesystem::path& model_of_more_words() {
  static const std::filesystem::path folder = model_of("model of more words", 400);
  return folder;
}

struct Loop {
  std::filesystem::path model = small_model();
  std::vector<int> prompt;
  std::size_t context = 40;
  std::size_t stop_after = 0;
  std::uint64_t seed = 0;
  GenerationOptions options;
};

Loop fresh_loop(Inputs& inputs) {
  Loop loop;
  for (std::size_t n = inputs.size(2, 5); n > 0; --n) {
    loop.prompt.push_back(static_cast<int>(inputs.size(0, 23)));
  }
  loop.seed = inputs.size(0, 1u << 30);
  loop.options.sampler.temperature = 0.0f;
  return loop;
}

struct Answer {
  std::vector<int> made;
  std::vector<int> fed;
  StopReason reason;
  int random_numbers;
};

Answer our_answer(const Loop& loop) {
  Engine engine = textbook_engine(loop.model);
  Session session(engine, loop.context);
  session.feed(loop.prompt);
  Random random(loop.seed);
  Answer answer;
  answer.reason = generate(session, loop.options, random, [&](TokenId token) {
    answer.made.push_back(token);
    return answer.made.size() != loop.stop_after;
  });
  answer.fed.assign(session.tokens().begin(), session.tokens().end());
  answer.random_numbers = numbers_taken(random, loop.seed);
  return answer;
}

// generate only composes functions that are judged elsewhere, so there is one right sequence of
// tokens: that of our own loop.
Case loop_case(const std::string& name, const Loop& loop) {
  const Answer answer = our_answer(loop);
  Case one;
  one.name = name;
  one.request.function = "generate";
  one.request.texts = {{"model", loop.model.string()}};
  one.request.inputs = {{"ids", numbers(loop.prompt)},
                        {"end_tokens", numbers(loop.options.end_tokens)}};
  one.request.scalars = {{"context", static_cast<double>(loop.context)},
                         {"max_tokens", static_cast<double>(loop.options.max_tokens)},
                         {"temperature", static_cast<double>(loop.options.sampler.temperature)},
                         {"top_k", static_cast<double>(loop.options.sampler.top_k)},
                         {"top_p", static_cast<double>(loop.options.sampler.top_p)},
                         {"repeat_penalty", static_cast<double>(loop.options.repeat_penalty)},
                         {"repeat_last_n", static_cast<double>(loop.options.repeat_last_n)},
                         {"seed", static_cast<double>(loop.seed)},
                         {"stop_after", static_cast<double>(loop.stop_after)}};
  one.expected = {{"chosen tokens", exactly(answer.made)},
                  {"reason", exactly({static_cast<int>(answer.reason)})},
                  {"fed tokens", exactly(answer.fed)},
                  {"random numbers", exactly({answer.random_numbers})}};
  one.describe = [expected = one.expected](const std::string& output, const Tensor& got) {
    const std::vector<double>& right = expected.at(output).values;
    if (output == "reason") {
      return say("reason_wrong", reason_name(right[0]), reason_name(got.values.at(0)));
    }
    if (output == "random numbers") return say("random_numbers", right[0], got.values.at(0));
    return diagnose_tokens(say(output == "fed tokens" ? "fed_tokens" : "chosen_tokens"), right,
                           got.values, [](int token) { return fmt::format("{}", token); });
  };
  return one;
}

bool judge_loop(const std::string& name, const Loop& loop) { return judge(loop_case(name, loop)); }

TEST(Generate, MakesTheTokensThatFollow) {
  Inputs inputs;
  Loop loop = fresh_loop(inputs);
  loop.options.max_tokens = 12;
  if (!judge_loop("12 tokens at temperature 0", loop)) return;
  const std::vector<int> greedy = our_answer(loop).made;
  loop.options.sampler.temperature = 0.9f;
  for (const char* name : {"12 random tokens: one number per token", "12 other tokens"}) {
    do {
      ++loop.seed;
    } while (our_answer(loop).made == greedy);
    judge_loop(name, loop);
  }
  loop.options.max_tokens = 100;
  loop.context = 140;
  loop.options.sampler.temperature = 0.0f;  // sampled ones could meet a rounding
  judge_loop("100 tokens at temperature 0", loop);
}

TEST(Generate, KeepsNothing) {
  Inputs inputs;
  std::vector<Case> cases;
  for (const std::size_t n : {6, 12, 30}) {
    Loop loop = fresh_loop(inputs);
    loop.options.max_tokens = n;
    cases.push_back(loop_case("", loop));
  }
  Loop loop = fresh_loop(inputs);
  loop.model = model_of_more_words();
  loop.options.max_tokens = 8;
  loop.options.sampler.temperature = 0.9f;
  cases.push_back(loop_case("", loop));
  judge(in_turn("one text after the other", cases));
}

TEST(Generate, PenalizesRepeats) {
  Inputs inputs;
  for (int found = 0; found < 2;) {
    Loop loop = fresh_loop(inputs);
    loop.options.max_tokens = 16;
    const std::vector<int> without = our_answer(loop).made;
    loop.options.repeat_penalty = 1.7f;
    loop.options.repeat_last_n = 1000;
    const std::vector<int> for_all = our_answer(loop).made;
    loop.options.repeat_last_n = 4;
    const std::vector<int> right = our_answer(loop).made;
    // Else this prompt shows nothing.
    if (right == without || right == for_all || for_all == without) continue;
    if (!judge_loop("a penalty over the last 4", loop)) return;
    loop.options.repeat_last_n = 1000;
    if (!judge_loop("a penalty over all tokens: repeat_last_n is 1000", loop)) return;
    loop.options.repeat_last_n = 0;
    if (!judge_loop("a penalty over no tokens: repeat_last_n is 0", loop)) return;
    ++found;
  }
}

TEST(Generate, StopsForEveryReason) {
  Inputs inputs;
  Loop loop = fresh_loop(inputs);
  loop.options.max_tokens = 0;
  if (!judge_loop("max_tokens = 0", loop)) return;
  loop.options.max_tokens = 200;
  for (const std::size_t context : {9, 12}) {
    loop.context = context;
    judge_loop(fmt::format("a context of {} is full", context), loop);
  }
  for (const std::size_t n : {6, 9}) {
    loop.options.max_tokens = n;
    loop.context = loop.prompt.size() + n - 1;  // all tokens but the last, which is not fed
    judge_loop(fmt::format("max_tokens = {}, and then the context is full, too", n), loop);
  }
  loop.options.max_tokens = 200;
  loop.context = 64;
  for (const std::size_t n : {5, 3}) {
    loop.stop_after = n;
    judge_loop(fmt::format("on_token returns false after {}", n), loop);
  }
  loop.options.max_tokens = loop.stop_after;
  judge_loop("on_token returns false after 3, and max_tokens = 3", loop);
  loop.options.max_tokens = 200;
  loop.context = loop.prompt.size() + loop.stop_after - 1;
  judge_loop("on_token returns false after 3, and then the context is full, too", loop);
  loop.stop_after = 0;
  loop.context = loop.prompt.size();
  judge_loop("a prompt as long as the context", loop);
}

TEST(Generate, StopsAtAnEndToken) {
  Inputs inputs;
  for (;;) {  // until the fourth token is a new one: it becomes the end token
    Loop loop = fresh_loop(inputs);
    loop.options.max_tokens = 4;
    const std::vector<int> made = our_answer(loop).made;
    const auto is_in = [&](int token, std::size_t n) {
      return std::count(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(n), token) > 0;
    };
    if (is_in(made[3], 3)) continue;
    int other = 0;
    while (is_in(other, 4)) ++other;
    loop.options.max_tokens = 20;
    loop.options.end_tokens = {made[3], other};
    judge_loop("an end token, the first of two", loop);
    loop.options.end_tokens = {other, made[3]};
    judge_loop("an end token, the second of two", loop);
    loop.options.end_tokens = {other, other, made[3]};
    judge_loop("an end token, the third of three", loop);
    loop.options.end_tokens = {made[3]};
    loop.options.max_tokens = 4;
    judge_loop("an end token, and max_tokens = 4", loop);
    loop.options.max_tokens = 20;
    loop.context = loop.prompt.size() + 3;
    judge_loop("an end token, and then the context is full, too", loop);
    loop.options.end_tokens = {made[0]};
    judge_loop("an end token at once", loop);
    return;
  }
}

}  // namespace
}  // namespace stagecraft::stages

// The gate of stage 11: are the results right, does the checker find nothing, and how many bytes
// move?
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "course/judge/messages.h"
#include "tests/gates/exact.h"
#include "tests/gates/questions.h"
#include "tests/gates/watched.h"

namespace stagecraft::stages {
namespace {

// An online softmax scales its sums once per key, and each scaling rounds.
constexpr double kOnline = 4.0;

struct Question {
  Case one;
  std::string output;       // "y"
  std::uint64_t bytes = 0;  // the minimum: each input and the output once
};

Question question(const std::string& name, Request request, const std::string& output,
                  Expected expected) {
  Question made{{name, std::move(request), {{output, std::move(expected)}}}, output};
  for (const auto& [input, tensor] : made.one.request.inputs) {
    made.bytes += sizeof(float) * tensor.values.size();
  }
  made.bytes += sizeof(float) * made.one.expected.at(output).values.size();
  return made;
}

Question rms_norm(Inputs& inputs, std::size_t rows, std::size_t dim) {
  const Tensor x = inputs.tensor({rows, dim}, 2.0f);
  const Tensor weight = inputs.tensor({dim});
  const double eps = static_cast<double>(0.3f);
  return question(fmt::format("rows = {}, dim = {}", rows, dim),
                  {"rms_norm_on_gpu", {{"x", x}, {"weight", weight}}, {{"eps", eps}}}, "y",
                  exact_rms_norm(exact(x), weight, eps));
}

Question matmul(Inputs& inputs, std::size_t m, std::size_t n, std::size_t k) {
  const Tensor a = inputs.tensor({m, k});
  const Tensor b = inputs.tensor({n, k});
  return question(fmt::format("m = {}, n = {}, k = {}", m, n, k),
                  {"matmul_transb_on_gpu", {{"a", a}, {"b", b}}, {}}, "c",
                  exact_matmul_transb(1.0, exact(a), b, 0.0, filled({m, n}, 0.0f)));
}

Request attention_request(const Tensor& q, const Tensor& keys, const Tensor& values,
                          std::size_t n_heads, std::size_t n_kv_heads) {
  const auto head_dim = static_cast<double>(q.values.size() / n_heads);
  return {"attention_on_gpu",
          {{"q", q}, {"keys", keys}, {"values", values}},
          {{"n_heads", static_cast<double>(n_heads)},
           {"n_kv_heads", static_cast<double>(n_kv_heads)},
           {"scale", static_cast<double>(1.0f / std::sqrt(static_cast<float>(head_dim)))}}};
}

// factor: a power of 2 by which scale is larger and q smaller; the scores stay the same.
Question attention_of(const std::string& name, const Tensor& q, const Tensor& keys,
                      const Tensor& values, std::size_t n_heads, std::size_t n_kv_heads,
                      float factor = 1.0f) {
  const Tensor row{{1, q.values.size()}, q.values};
  Expected out =
      exact_attention(exact(row), exact(keys), exact(values), n_heads, n_kv_heads, 0).out;
  out.shape = q.shape;
  for (double& allowed : out.allowed) allowed *= kOnline;
  Tensor given = q;
  for (float& value : given.values) value /= factor;
  Request request = attention_request(given, keys, values, n_heads, n_kv_heads);
  request.scalars["scale"] *= static_cast<double>(factor);
  return question(name, request, "out", std::move(out));
}

Question attention(Inputs& inputs, std::size_t n_heads, std::size_t n_kv_heads,
                   std::size_t head_dim, std::size_t length) {
  const Tensor q = inputs.tensor({n_heads * head_dim}, 2.0f);
  const Tensor keys = inputs.tensor({length, n_kv_heads * head_dim});
  const Tensor values = inputs.tensor({length, n_kv_heads * head_dim});
  return attention_of(fmt::format("{} heads, {} kv heads of {}, {} positions", n_heads, n_kv_heads,
                                  head_dim, length),
                      q, keys, values, n_heads, n_kv_heads, 2.0f);
}

// The scores of the upper half of the heads are far below 0, those of the others near it. So exp of
// the lower scores is 0 unless their own maximum is subtracted.
Question attention_far_below(Inputs& inputs) {
  constexpr std::size_t kHeads = 4, kKvHeads = 2, kDim = 16, kLength = 40;
  Tensor q = inputs.tensor({kHeads * kDim}, 2.0f);
  Tensor keys = inputs.tensor({kLength, kKvHeads * kDim});
  for (std::size_t i = kHeads / 2 * kDim; i < q.values.size(); ++i) q.values[i] += 12.0f;
  for (std::size_t i = 0; i < keys.values.size(); ++i) {
    if (i % (kKvHeads * kDim) >= kDim) keys.values[i] -= 12.0f;
  }
  return attention_of("scores far below 0", q, keys, inputs.tensor({kLength, kKvHeads * kDim}),
                      kHeads, kKvHeads);
}

// ---- right --------------------------------------------------------------------------------------

std::string said(const Watched::Finding& finding) {
  if (finding.place.empty()) return say("gpu_finding_anywhere", finding.kind, finding.text);
  return say("gpu_finding", finding.place, finding.kind, finding.text);
}

// The fill value of local variables without a value (UNSET in tools/cuda_check.py), and the same
// after conversion from double to float. Arithmetic on a NaN keeps its bits.
bool comes_from_unset(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & 0x7fffffff;
  return bits == 0x7ffefffe || bits == 0x7ff7fff7;
}

// Describes what is wrong with the numbers. If the checker ended a launch, its finding explains
// wrong numbers.
std::string problem_with_result(const Case& one, const std::string& output,
                                const Outcome& outcome) {
  const std::string broken = broken_rule(outcome);
  if (!broken.empty()) return broken;
  for (std::size_t call = 1; call <= one.request.calls; ++call) {
    const auto got = outcome.response.outputs.find(output_name(output, call));
    if (got == outcome.response.outputs.end()) return say("no_answer", output);
    const Expected& expected = one.expected.at(output);
    if (agrees(expected, got->second)) continue;
    std::string problem = diagnose(one.request.function, output, expected, got->second);
    if (call > 1) problem = say("same_twice") + "\n  " + problem;
    if (std::ranges::any_of(got->second.values, comes_from_unset)) {
      problem += "\n  " + say("gpu_unset");
    }
    const Watched watched(outcome.response, output_name("report", call));
    if (!watched.findings.empty()) {
      problem += "\n  " + said(watched.findings.front());
    } else if (std::ranges::any_of(got->second.values, is_untouched)) {
      problem += "\n  " + say("gpu_no_thread");
    }
    return problem;
  }
  return {};
}

bool judge_result(Question asked) {
  // Two programs make the same mistake only if the checker also finds the same first. This alone is
  // no evidence, because many mistakes end a launch in the same way.
  Expected& first = asked.one.expected["first finding"] = exactly({});
  first.whole = false;
  return judge_by(asked.one, [one = asked.one, output = asked.output](const Outcome& outcome) {
    return problem_with_result(one, output, outcome);
  });
}

// ---- watched ------------------------------------------------------------------------------------

std::string problem_with_findings(const Question& asked, const Outcome& outcome) {
  const std::string wrong = problem_with_result(asked.one, asked.output, outcome);
  if (!wrong.empty()) return wrong;
  const Watched watched(outcome.response);
  if (!watched.findings.empty()) {
    const std::size_t more = watched.findings.size() - 1;
    return said(watched.findings.front()) + (more == 0 ? "" : "\n  " + say("gpu_more", more));
  }
  if (watched.distinct_bytes < asked.bytes) {
    return say("gpu_unseen", watched.distinct_bytes, asked.bytes);
  }
  return {};
}

void judge_findings(Question asked) {
  asked.one.expected["findings"] = exactly({});  // known mistakes are recognised by these
  judge_by(asked.one,
           [asked](const Outcome& outcome) { return problem_with_findings(asked, outcome); });
}

// ---- counted ------------------------------------------------------------------------------------

constexpr std::uint64_t kRequests = 10;

struct CountBand {
  double times;                // bytes in sectors, relative to the minimum
  bool few_conflicts = false;  // at most one per kRequests requests of shared memory
};

std::string measured(const Question& asked, const Watched& watched) {
  return say("gpu_measured", asked.one.name, watched.bytes_in_sectors(), asked.bytes,
             static_cast<double>(watched.bytes_in_sectors()) / static_cast<double>(asked.bytes),
             watched.conflicts());
}

// The line to improve first: its requests touch the most sectors beyond the ideal, or have the most
// bank conflicts.
std::string worst_line(const Watched& watched, bool of_conflicts) {
  const auto waste = [=](const Watched::Line& line) {
    if (of_conflicts) return line.conflicts;
    return line.sectors > line.ideal ? line.sectors - line.ideal : 0;
  };
  const auto worst = std::ranges::max_element(watched.lines, {}, waste);
  if (worst == watched.lines.end() || worst->requests == 0 || waste(*worst) == 0) {
    return say("gpu_reads_again");
  }
  const auto per_request = [&](std::uint64_t n) {
    return static_cast<double>(n) / static_cast<double>(worst->requests);
  };
  if (of_conflicts) return say("gpu_worst_conflicts", worst->place, per_request(worst->conflicts));
  return say("gpu_worst_sectors", worst->place, per_request(worst->sectors),
             per_request(worst->ideal));
}

std::string problem_with_counts(const Question& asked, const CountBand& band,
                                const Outcome& outcome) {
  const Watched watched(outcome.response);
  const auto most = band.times * static_cast<double>(asked.bytes);
  if (static_cast<double>(watched.bytes_in_sectors()) > most) {
    return measured(asked, watched) + "\n  " + say("gpu_band", band.times) + "\n  " +
           worst_line(watched, false);
  }
  if (band.few_conflicts && kRequests * watched.conflicts() > watched.shared_requests()) {
    return measured(asked, watched) + "\n  " + say("gpu_band_conflicts") + "\n  " +
           worst_line(watched, true);
  }
  return {};
}

// Counts are whole numbers: naming a mistake needs two cases.
void judge_counts(Question asked, const CountBand& band) {
  asked.one.expected["findings"] = exactly({});
  asked.one.expected["counts"] = exactly({0, 0});  // to compare with known mistakes
  const auto is_slow = std::make_shared<bool>(false);
  judge_by(asked.one, [asked, band, is_slow](const Outcome& outcome) {
    const std::string wrong = problem_with_findings(asked, outcome);
    if (!wrong.empty()) return say("gpu_not_counted") + "\n  " + wrong;
    const std::string over = problem_with_counts(asked, band, outcome);
    *is_slow = !over.empty();
    return over;
  });
  if (*is_slow) ::testing::Test::RecordProperty("too-slow", "yes");
}

// ---- rms_norm -----------------------------------------------------------------------------------

TEST(GpuRmsNorm, EqualsPyTorch) {
  for (Case one : dumped_cases("rms_norm")) {
    if (one.request.inputs.at("x").values.empty()) continue;
    one.request.function = "rms_norm_on_gpu";
    if (!judge_result({one, "y"})) return;
  }
}

TEST(GpuRmsNorm, EqualsTheReferenceAtSizesOfEveryKind) {
  Inputs inputs;
  const std::size_t kSizes[][2] = {{1, 31},  {1, 32},  {1, 64},   {2, 65}, {33, 5},
                                   {70, 40}, {9, 200}, {3, 1500}, {1, 1}};
  for (const auto& [rows, dim] : kSizes) {
    Question asked = rms_norm(inputs, rows, dim);
    asked.one.request.calls = rows == 9 ? 2 : 1;
    if (!judge_result(asked)) return;
  }
}

TEST(GpuRmsNormChecked, HasNoFindings) {
  Inputs inputs;
  judge_findings(rms_norm(inputs, 37, 70));
  judge_findings(rms_norm(inputs, 3, 300));
}

// With one thread per row, a request of 32 lanes touches 32 sectors: 12 times the minimum. With a
// warp per row it touches 4: 2 times the minimum, because x is read twice, and the weight per row.
// `x[i] * x[i]` makes 2.5, because no compiler merges the two reads here.
void count_rms_norm(const CountBand& band) {
  Inputs inputs;
  judge_counts(rms_norm(inputs, 64, 192), band);
  judge_counts(rms_norm(inputs, 40, 224), band);
}
TEST(GpuRmsNormCounts, ReachTheFirstBand) { count_rms_norm({4.0}); }
TEST(GpuRmsNormCounts, ReachTheLastBand) { count_rms_norm({2.6, true}); }

// ---- matmul_transb ------------------------------------------------------------------------------

TEST(GpuMatmul, EqualsPyTorch) {
  for (Case one : dumped_cases("matmul_transb")) {
    const auto& inputs = one.request.inputs;
    const bool empty = inputs.at("a").values.empty() || inputs.at("b").values.empty();
    const auto& scalars = one.request.scalars;
    if (empty || scalars.at("alpha") != 1.0 || scalars.at("beta") != 0.0) continue;
    one.request = {"matmul_transb_on_gpu", {{"a", inputs.at("a")}, {"b", inputs.at("b")}}, {}};
    if (!judge_result({one, "c"})) return;
  }
}

TEST(GpuMatmul, EqualsTheReferenceAtSizesOfEveryKind) {
  Inputs inputs;
  const std::size_t kSizes[][3] = {
      {1, 64, 32}, {33, 40, 17}, {20, 16, 70}, {1, 1, 1}, {2, 100, 33}};
  for (const auto& [m, n, k] : kSizes) {
    Question asked = matmul(inputs, m, n, k);
    asked.one.request.calls = m == 33 ? 2 : 1;
    if (!judge_result(asked)) return;
  }
}

TEST(GpuMatmulChecked, HasNoFindings) {
  Inputs inputs;
  judge_findings(matmul(inputs, 19, 37, 41));
  judge_findings(matmul(inputs, 1, 70, 40));
}

// One thread per element of C reads 33 sectors for 32 products: 132.5 times the minimum. One warp
// per element: 36 times. A tile of 16 x 16: 2.5 times, of 32 x 32: 1.5 times.
void count_matmul(const CountBand& band) {
  Inputs inputs;
  judge_counts(matmul(inputs, 64, 64, 32), band);
  judge_counts(matmul(inputs, 48, 64, 32), band);
}
TEST(GpuMatmulCounts, ReachTheFirstBand) { count_matmul({40.0}); }
TEST(GpuMatmulCounts, ReachTheSecondBand) { count_matmul({2.6}); }
TEST(GpuMatmulCounts, ReachTheLastBand) { count_matmul({2.6, true}); }

// ---- attention ----------------------------------------------------------------------------------

// Uses the last query of each case, because a new token attends to all keys.
TEST(GpuAttention, EqualsPyTorch) {
  for (const Case& whole : dumped_cases("attention")) {
    const auto& inputs = whole.request.inputs;
    const Tensor& q = inputs.at("q");
    const auto size = [&](const char* name) {
      return static_cast<std::size_t>(whole.request.scalars.at(name));
    };
    if (q.values.empty() || size("window") != 0) continue;
    const auto cols = static_cast<std::ptrdiff_t>(q.cols());
    const Tensor row{{q.cols()}, {q.values.end() - cols, q.values.end()}};
    const Expected& all = whole.expected.at("out");
    Expected out{{q.cols()},
                 {all.values.end() - cols, all.values.end()},
                 {all.allowed.end() - cols, all.allowed.end()}};
    for (double& allowed : out.allowed) allowed *= kOnline;
    const Question asked = question(
        whole.name,
        attention_request(row, inputs.at("k"), inputs.at("v"), size("n_heads"), size("n_kv_heads")),
        "out", out);
    if (!judge_result(asked)) return;
  }
}

TEST(GpuAttention, EqualsTheReferenceAtSizesOfEveryKind) {
  Inputs inputs;
  const std::size_t kSizes[][4] = {{4, 2, 48, 33}, {2, 1, 128, 5},   {3, 3, 64, 1},  {8, 2, 32, 70},
                                   {6, 3, 31, 64}, {1, 1, 100, 200}, {4, 4, 16, 32}, {9, 3, 65, 2}};
  for (const auto& [heads, kv_heads, dim, length] : kSizes) {
    Question asked = attention(inputs, heads, kv_heads, dim, length);
    asked.one.request.calls = length == 70 ? 2 : 1;
    if (!judge_result(asked)) return;
  }
  judge_result(attention_far_below(inputs));
}

TEST(GpuAttentionChecked, HasNoFindings) {
  Inputs inputs;
  judge_findings(attention(inputs, 6, 2, 40, 50));
  judge_findings(attention(inputs, 4, 2, 100, 33));
}

// One thread per key touches 32 sectors per request. Reading keys and values once per query head
// makes 2 times the minimum here, because two query heads share them.
void count_attention(const CountBand& band) {
  Inputs inputs;
  judge_counts(attention(inputs, 4, 2, 48, 96), band);
  judge_counts(attention(inputs, 4, 2, 48, 64), band);
}
TEST(GpuAttentionCounts, ReachTheFirstBand) { count_attention({4.0}); }
TEST(GpuAttentionCounts, ReachTheLastBand) { count_attention({2.2, true}); }

}  // namespace
}  // namespace stagecraft::stages

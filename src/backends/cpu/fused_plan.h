#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "model/plan.h"

namespace stagecraft {

// A plan as the CPU backend runs it: steps that share their input, or whose result is needed at
// once, are one. Compiled once, when a model is opened; a pass only walks the list.
//
//   norm, linears of the same input        FusedLinears: rows are normed and rounded once for all
//   linear, x += its result                the sum is written by the kernel that makes it
//   linear, activation without a gate      the same
//   gate and up, activation                FusedGate: the two meet in registers and cache
//   norms and rope of q and k, store,      FusedAttention: one task per key head and a few rows
//     attention
//   experts, x += their result             FusedExperts: summed where it is added
//   norm, x += its result                  FusedAdd
//   select                                 moved up to the last step that writes a state, or its
//                                          attention: what comes later is computed for the scored
//                                          rows alone

struct FusedEmbed {
  BufferId out;
  WeightId table;
  float scale;
  WeightId positions;
};

// A norm on the way from one step to the next.
struct RowNorm {
  NormStep::Kind kind = NormStep::Kind::Rms;
  WeightId weight = kNone, bias = kNone;
  float eps = 0.0f;
  std::size_t group = 0;  // 0: there is no norm
};

// Rows on their way into linears, and the norm that they pass first.
struct LinearInput {
  BufferId in;
  RowNorm norm = {};
};

struct FusedLinear {
  WeightId weight, bias;
  BufferId out;
  bool add = false;  // out += instead of out =
  std::optional<ActivateStep::Function> activation = {};
  bool scored_only = false;  // nobody reads the other rows
};

struct FusedLinears {
  static constexpr std::size_t kMost = 8;  // linears

  LinearInput input;
  std::vector<FusedLinear> linears;
};

struct FusedGate {
  LinearInput input;
  FusedLinear gate, up;
  BufferId out;
  ActivateStep::Function function;
  // The linears of the next step, if nothing else reads the result. If all of their kernels round
  // it, it is only written rounded.
  std::vector<WeightId> readers = {};
};

struct FusedExperts {
  ExpertsStep step;  // out: what is written, or added to
  bool add = false;  // out += instead of out =
};

// What happens to every head of q, or of k, before they meet.
struct HeadRotation {
  RowNorm norm = {};  // of each head
  // Each rotates the columns after those of the one before it; the rest stay as they are.
  std::vector<FrequenciesId> ropes = {};
  RopeStep::Pairs pairs = RopeStep::Pairs::Halves;
};

struct FusedAttention {
  AttentionStep step;  // out, q, cache, heads, scale, window, soft cap, slopes
  std::size_t index;   // among the plan's attentions
  BufferId k, v;       // kNone: another layer has stored them
  HeadRotation q_rotation, k_rotation;
  bool scored_only = false;  // only scored rows look back, all rows leave keys and values
};

// x += scale * norm(in), or scale * in
struct FusedAdd {
  BufferId x, in;
  float scale = 1.0f;
  RowNorm norm = {};
};

// A norm that nothing next to it takes in: OLMo 2's, of all heads of q or of k at once.
struct FusedNorm {
  BufferId out, in;
  RowNorm norm;
  bool scored_only = false;  // nobody reads the other rows
};

// The scored rows of these buffers move to the top; the others are forgotten.
struct FusedSelect {
  std::vector<BufferId> buffers;
};

using FusedStep = std::variant<FusedEmbed, FusedLinears, FusedGate, FusedExperts, FusedAttention,
                               FusedAdd, FusedNorm, ActivateStep, MapStep, RouteStep, ShortConvStep,
                               DeltaStep, HeadsLinearStep, JoinStep, FusedSelect>;

struct FusedPlan {
  std::vector<FusedStep> steps;

  // Buffers that stand in memory. The others live in a kernel's registers and scratch.
  std::vector<bool> stored;
};

// Throws Error naming the step that this backend does not run.
FusedPlan fuse(const Plan& plan);

}  // namespace stagecraft

#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "model/plan.h"

namespace stagecraft {

// A plan as the CPU backend runs it: steps that share their input, or whose result the next step
// needs, are fused into one. A plan is fused once, when a model is opened.
//
//   norm, linears of the same input        FusedLinears: rows are normed and rounded once for all
//   linear, x += its result                FusedLinears: the kernel adds its result to x
//   linear, activation without `up`        FusedLinears
//   gate and up, activation                FusedGate: gate and up stay in registers and cache
//   norms and rope of q and k, store,      FusedAttention: one task per key head and a few rows
//     attention
//   experts, x += their result             FusedExperts: the experts' sum is added to x directly
//   norm, x += its result                  FusedAdd
//   select                                 FusedSelect, moved up behind the last step that writes a
//                                          state or attends: later steps compute scored rows only

// A norm of the rows that a fused step reads.
struct RowNorm {
  NormStep::Kind kind = NormStep::Kind::Rms;
  WeightId weight = kNone, bias = kNone;
  float eps = 0.0f;
  std::size_t group = 0;  // 0: there is no norm
};

// The input rows of linears, and the norm that is applied to them first.
struct LinearInput {
  BufferId in;
  RowNorm norm = {};
};

struct FusedLinear {
  WeightId weight, bias;
  BufferId out;
  bool add = false;  // out += instead of out =
  std::optional<ActivateStep::Function> activation = {};
  bool scored_only = false;  // only scored rows are read later
};

struct FusedLinears {
  static constexpr std::size_t kMaxLinears = 8;  // linears per group

  LinearInput input;
  std::vector<FusedLinear> linears;
};

struct FusedGate {
  LinearInput input;
  FusedLinear gate, up;
  BufferId out;
  ActivateStep::Function function;
  // The weights of the linears of the next step, if only they read the result. If the kernels of
  // all of them need it rounded, it is written only rounded.
  std::vector<WeightId> readers = {};
};

struct FusedExperts {
  ExpertsStep step;             // out: what is written, or added to
  std::size_t n_chosen, width;  // most_chosen() and expert_width() of the step
  bool add = false;             // out += instead of out =
};

// What is done to each head of q, or of k, before their product.
struct HeadRotation {
  RowNorm norm = {};  // of each head
  // Each rotates the columns after those of the previous one; the remaining columns are not
  // rotated.
  std::vector<FrequenciesId> ropes = {};
  RopeStep::Pairs pairs = RopeStep::Pairs::Halves;
};

struct FusedAttention {
  AttentionStep step;
  std::size_t index;  // among the plan's attentions
  BufferId k, v;      // kNone: an earlier layer has stored them
  HeadRotation q_rotation, k_rotation;
  bool scored_only = false;  // only scored rows attend; all rows store keys and values
};

// x += scale * norm(in), or scale * in
struct FusedAdd {
  BufferId x, in;
  float scale = 1.0f;
  RowNorm norm = {};
};

// A norm that is not fused with a neighbouring step, such as OLMo 2's of all heads of q or of k at
// once.
struct FusedNorm {
  BufferId out, in;
  RowNorm norm;
  bool scored_only = false;  // only scored rows are read later
};

// Moves the scored rows of these buffers to the top. The other rows are not read again.
struct FusedSelect {
  std::vector<BufferId> buffers;
};

using FusedStep = std::variant<EmbedStep, FusedLinears, FusedGate, FusedExperts, FusedAttention,
                               FusedAdd, FusedNorm, ActivateStep, MapStep, RouteStep, ShortConvStep,
                               DeltaStep, HeadsLinearStep, JoinStep, FusedSelect>;

struct FusedPlan {
  std::vector<FusedStep> steps;

  // By BufferId: whether a workspace must have the buffer. The others are only in registers and
  // scratch memory.
  std::vector<bool> stored;
};

// Throws Error naming the step if this backend cannot run a step of the plan.
FusedPlan fuse(const Plan& plan);

// A matrix that is packed, because a step multiplies rows by it.
struct FusedMatrix {
  WeightId weight;
  bool scored_only = false;  // its results are read only for scored rows
};
// The matrices of a step; for experts gate, up and down of each expert.
std::vector<FusedMatrix> matrices_of(const FusedStep& step);

}  // namespace stagecraft

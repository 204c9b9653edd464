#include "backends/cuda/cuda_pass.h"

#include <algorithm>

namespace stagecraft::cuda {

class Pass {
 public:
  Pass(const CudaProgram& program, PassWorkspace& w, const SequenceSlot* slots, PassRows& rows)
      : plan_(program.plan),
        weights_(program.weights),
        tables_(program.tables),
        w_(w),
        slots_(slots),
        n_rows_(rows.ids.size()),
        scored_(rows.scored.size()),
        rows_(n_rows_) {
    upload_tables(rows);
    if (const BufferId to = row_input(plan_); to != kNone) upload_rows(rows.given, to);
  }

  // If no row is scored, the pass ends at the SelectStep. May be called again: a Recorder does so
  // if a record was not made.
  void run() {
    rows_ = n_rows_;
    is_selected_ = false;
    rounded_ = kNone;
    for (step_ = 0; step_ < plan_.steps.size() && rows_ != 0; ++step_) {
      const auto& kind = plan_.steps[step_].kind;
      if (!std::holds_alternative<LinearStep>(kind)) rounded_ = kNone;  // may write this buffer
      std::visit([this](const auto& one) { compute(one); }, kind);
    }
  }

  void choose() { likeliest(w_.rows(plan_.logits, scored_), w_.likeliest_.as<int>()); }

  void read_likeliest(std::span<TokenId> tokens) const {
    download(tokens.data(), w_.likeliest_.as<int>(), tokens.size_bytes());
  }

  void read_logits(std::size_t t, std::span<float> logits) const {
    const Rows from = w_.rows(plan_.logits, scored_);
    download(logits.data(), from.values + t * from.stride, logits.size_bytes());
  }

 private:
  // All tables are one copy. A table has rows_ numbers, so passes of the same number of rows have
  // their tables at the same places, as a record needs it.
  void upload_tables(PassRows& rows) {
    const std::vector<int>* const tables[kRowTables] = {
        &rows.ids,       &rows.positions,      &rows.seen,
        &rows.sequences, &rows.text_positions, &rows.answer_positions,
        &rows.scored};
    std::vector<int>& all = rows.tables;
    all.resize(kRowTables * rows_);
    const auto at = [&](std::size_t table) { return w_.tables_.as<int>() + table * rows_; };
    for (std::size_t i = 0; i < kRowTables; ++i) {
      std::ranges::copy(*tables[i], all.begin() + static_cast<std::ptrdiff_t>(i * rows_));
    }
    upload(at(0), all.data(), all.size() * sizeof(int));
    tokens_ = {at(0), at(1), at(2), at(3)};
    text_positions_ = at(4);
    answer_positions_ = at(5);
    scored_rows_ = at(6);
  }

  // The rows are uploaded before the launches, like the tables. So a repeated pass reads them, too.
  void upload_rows(const std::vector<MatrixView<const float>>& parts, BufferId id) {
    const Rows to = w_.rows(id, rows_);
    float* next = to.values;
    for (const MatrixView<const float>& part : parts) {
      const bool is_filled = part.cols() == to.stride && part.stride() == to.stride;
      if (is_filled) upload(next, part.data(), part.rows() * to.stride * sizeof(float));
      for (std::size_t t = 0; t < part.rows(); ++t, next += to.stride) {
        if (!is_filled) upload(next, part.row(t).data(), part.row(t).size_bytes());
      }
    }
  }

  void compute(const EmbedStep& s) {
    const bool has_table = s.table != kNone;
    if (has_table) embed(rows(s.out), weights_.matrix(s.table), tokens_.ids, s.scale, false);
    if (s.positions == kNone) return;
    embed(rows(s.out), weights_.matrix(s.positions), tokens_.positions, 1.0f, has_table);
  }

  void compute(const NormStep& s) {
    NormOptions options;
    options.weight = weights_.vector(s.weight);
    options.bias = weights_.vector(s.bias);
    options.group = static_cast<unsigned>(s.group);
    options.own_weights = s.weight != kNone && plan_.weight(s.weight).shape.front() > s.group;
    options.centered = s.kind == NormStep::Kind::Layer;
    options.eps = s.eps;
    const Rows out = rows(s.out);
    const HalfRows halves = options.group == out.width ? halves_for_next(s.out) : HalfRows();
    norm(out, rows(s.in), options, halves);
  }

  // Up to kMostProducts linear steps of the same rows are one launch.
  void compute(const LinearStep& s) {
    Products products;
    put(products, s);
    const DeviceMatrix& first = products.of[0].weight;
    while (products.n < kMostProducts) {  // a step that is no LinearStep ends the loop
      const LinearStep* next = next_step<LinearStep>();
      if (next == nullptr || next->in != s.in) break;
      const DeviceMatrix& weight = weights_.matrix(next->weight);
      if (weight.type != first.type || weight.tensor_cores != first.tensor_cores) break;
      ++step_;
      put(products, *next);
    }
    if (tables_.adds_result[step_]) ++step_;  // the product does the AddStep, too
    if (first.tensor_cores) {
      const HalfRows halves = half_rows(s.in, first.type);
      if (rounded_ != s.in || is_bf16_ != halves.is_bf16) round_rows(halves, rows(s.in));
      set_rounded(s.in, halves);
      tensor_linear(products, halves);
    } else {
      linear(products, rows(s.in));
    }
    for (unsigned i = 0; i < products.n; ++i) {  // a product may have overwritten the rounded rows
      const float* to = products.of[i].out.values;
      if (rounded_ != kNone && to == rows(rounded_).values) rounded_ = kNone;
    }
  }

  // s is the step at step_.
  void put(Products& products, const LinearStep& s) const {
    const bool adds = tables_.adds_result[step_];
    const BufferId to = adds ? std::get<AddStep>(plan_.steps[step_ + 1].kind).x : s.out;
    products.of[products.n++] = {weights_.matrix(s.weight), weights_.vector(s.bias), rows(to),
                                 adds};
  }

  // The next step, if it is of this kind.
  template <class Kind>
  const Kind* next_step() const {
    if (step_ + 1 == plan_.steps.size()) return nullptr;
    return std::get_if<Kind>(&plan_.steps[step_ + 1].kind);
  }

  // For the kernel that writes this buffer: the halves that it must write, too, if the next step
  // multiplies the buffer with tensor cores; else halves without values. The caller must pass the
  // result to the kernel, because after this call the rows count as rounded.
  HalfRows halves_for_next(BufferId id) {
    const LinearStep* next = next_step<LinearStep>();
    if (next == nullptr || next->in != id) return {};
    const DeviceMatrix& weight = weights_.matrix(next->weight);
    if (!weight.tensor_cores) return {};
    const HalfRows halves = half_rows(id, weight.type);
    set_rounded(id, halves);
    return halves;
  }

  void set_rounded(BufferId id, const HalfRows& halves) {
    rounded_ = id;
    is_bf16_ = halves.is_bf16;
  }

  // The halves for the rows of a buffer that are multiplied with weights of this type.
  HalfRows half_rows(BufferId id, WeightType of_weights) const {
    const Rows of = rows(id);
    return {w_.halves_.as<unsigned short>(),
            w_.powers_.as<float>(),
            w_.sums_.as<float>(),
            of.count,
            of.stride,
            of_weights == WeightType::BF16};
  }

  void compute(const ActivateStep& s) {
    Rows up = s.up == kNone ? Rows() : rows(s.up);
    up.values += s.first_column;
    // The kernel that also rounds loads eight numbers at once. So `up` must be aligned; then no
    // load reaches behind the row.
    const bool is_aligned = s.first_column % 8 == 0;
    const HalfRows halves = is_aligned ? halves_for_next(s.out) : HalfRows();
    activate(rows(s.out), rows(s.gate), up, s.function, halves);
  }

  void compute(const RouteStep& s) {
    RouteOptions options;
    options.n_chosen = static_cast<unsigned>(s.n_chosen);
    options.normed = s.normed;
    options.sigmoid = s.score == RouteStep::Score::Sigmoid;
    options.bias = weights_.vector(s.bias);
    options.scale = s.scale;
    options.n_groups = static_cast<unsigned>(s.groups.n);
    options.n_chosen_groups = static_cast<unsigned>(s.groups.n_chosen);
    options.n_counted = static_cast<unsigned>(s.groups.n_counted);
    route(rows(s.x), options);
  }

  void compute(const ExpertsStep& s) {
    const auto per_row = static_cast<unsigned>(most_chosen(plan_, s));
    const DeviceWeights::Experts experts = weights_.experts(s);
    const auto count = static_cast<unsigned>(rows_) * per_row;
    const auto inside = [&](Rows all, std::size_t width) {
      return Rows{all.values, count, static_cast<unsigned>(width), padded(width)};
    };
    const Rows gate = inside(w_.gate_, expert_width(plan_, s)), up = inside(w_.up_, gate.width);
    const Rows down = inside(w_.down_, rows(s.out).width);
    int* chosen = w_.chosen_.as<int>();
    list_experts(rows(s.routing_weights), per_row, chosen);
    expert_linear(gate, rows(s.in), experts.gate, chosen, per_row);
    expert_linear(up, rows(s.in), experts.up, chosen, per_row);
    if (s.limit != 0.0f) {
      clamped_swiglu(gate, up, s.alpha, s.limit);
    } else {
      activate(gate, gate, up, s.function, {});
    }
    expert_linear(down, gate, experts.down, chosen, 1);
    combine_experts(rows(s.out), down, rows(s.routing_weights), per_row, chosen);
  }

  void compute(const AddStep& s) { add(rows(s.x), rows(s.in), s.scale); }

  void compute(const MapStep& s) {
    MapOptions options;
    options.scale = s.scale;
    options.soft_cap = s.soft_cap;
    options.clip = s.clip;
    options.by = weights_.vector(s.by);
    options.by_columns = s.by != kNone && plan_.weight(s.by).elements() > 1;
    map(rows(s.x), options);
  }

  void compute(const RopeStep& s) {
    const auto id = static_cast<std::size_t>(s.frequencies);
    const Frequencies& frequencies = plan_.frequencies[id];
    RopeOptions options;
    options.frequencies = tables_.frequencies[id].as<float>();
    options.n_frequencies = static_cast<unsigned>(frequencies.values.size());
    options.head_dim = static_cast<unsigned>(s.head_dim);
    options.first_column = static_cast<unsigned>(s.first_column);
    options.neighbours = s.pairs == RopeStep::Pairs::Neighbours;
    Rows k;
    const RopeStep* next = next_step<RopeStep>();
    if (next != nullptr && next->x != s.x && s.same_rotation(*next)) {  // s is for q, next for k
      k = rows(next->x);
      ++step_;
    }
    const int* positions =
        frequencies.positions == Positions::Answer ? answer_positions_ : text_positions_;
    const StoreStep* stores = k.values == nullptr ? nullptr : next_step<StoreStep>();
    if (stores != nullptr && stores->k == next->x && stores->v != s.x &&
        plan_.cache(stores->cache).head_dim == s.head_dim) {
      ++step_;
      return rope_and_store(cache(stores->cache), rows(s.x), k, rows(stores->v), tokens_, positions,
                            options);
    }
    rope(rows(s.x), k, positions, options);
  }

  void compute(const StoreStep& s) { store(cache(s.cache), rows(s.k), rows(s.v), tokens_); }

  void compute(const AttentionStep& s) {
    AttentionOptions options;
    options.n_heads = static_cast<unsigned>(s.n_heads);
    options.window = static_cast<unsigned>(s.window);
    options.scale = s.scale;
    options.soft_cap = s.soft_cap;
    options.slopes = tables_.slopes[step_].as<float>();
    options.sinks = weights_.vector(s.sinks);
    options.tensor_cores = weights_.rounds_rows();
    attention(rows(s.out), rows(s.q), cache(s.cache), tokens_, options);
  }

  void compute(const HeadsLinearStep& s) {
    heads_linear(rows(s.out), rows(s.in), weights_.heads(s),
                 static_cast<unsigned>(s.weights.size()), static_cast<unsigned>(s.first_column));
  }

  void compute(const JoinStep& s) {
    join(rows(s.out), rows(s.a), rows(s.b), static_cast<unsigned>(s.n_heads));
  }

  void compute(const ShortConvStep& s) {
    short_conv(rows(s.out), rows(s.in), weights_.matrix(s.taps), weights_.vector(s.bias),
               state(s.state), tokens_);
  }

  void compute(const DeltaStep& s) {
    DeltaOptions options;
    options.rate = weights_.vector(s.rate);
    options.shift = weights_.vector(s.shift);
    options.n_key_heads = static_cast<unsigned>(s.n_key_heads);
    options.key_dim = static_cast<unsigned>(s.key_dim);
    options.in_turn = s.in_turn;
    gated_delta(rows(s.out), rows(s.in), rows(s.beta), rows(s.decay), options, state(s.state),
                tokens_);
  }

  void compute(const SelectStep& s) {
    const Rows all = rows(s.x);
    rows_ = scored_;
    is_selected_ = true;
    if (rows_ != 0) gather(rows(s.x), all, scored_rows_);
  }

  Rows rows(BufferId id) const {
    return is_selected_ && id == w_.selects_ ? w_.selected(rows_) : w_.rows(id, rows_);
  }

  Cache cache(CacheId id) const {
    const CacheShape& shape = plan_.cache(id);
    return {slots_, tables_.cache_type, static_cast<unsigned>(shape.n_kv_heads),
            static_cast<unsigned>(shape.head_dim),
            tables_.cache_begin[static_cast<std::size_t>(id)]};
  }

  State state(StateId id) const {
    return {slots_, tables_.state_begin[static_cast<std::size_t>(id)]};
  }

  const Plan& plan_;
  const DeviceWeights& weights_;
  const PlanTables& tables_;
  PassWorkspace& w_;
  const SequenceSlot* slots_;
  Tokens tokens_;
  const int* text_positions_ = nullptr;
  const int* answer_positions_ = nullptr;
  const int* scored_rows_ = nullptr;
  const std::size_t n_rows_, scored_;
  std::size_t rows_;  // of the current step: n_rows_; behind the SelectStep, scored_
  bool is_selected_ = false;
  std::size_t step_ = 0;
  BufferId rounded_ = kNone;  // the buffer whose rows are also in the workspace as halves
  bool is_bf16_ = false;      // whether these halves are bf16
};

Rows PassWorkspace::make_rows(std::size_t count, std::size_t width) {
  if (count * width == 0) return {};
  const std::size_t bytes = count * padded(width) * sizeof(float);
  float* values = memory_.emplace_back(bytes).as<float>();
  clear(values, bytes);  // the padding of the rows stays zero
  return {values, static_cast<unsigned>(count), static_cast<unsigned>(width), padded(width)};
}

PassWorkspace::PassWorkspace(const Plan& plan, std::size_t max_rows)
    : max_rows_(max_rows), tables_(kRowTables * max_rows * sizeof(int)) {
  for (const Buffer& buffer : plan.buffers) buffers_.push_back(make_rows(max_rows, buffer.width));
  for (const Step& step : plan.steps) {
    const auto* select = std::get_if<SelectStep>(&step.kind);
    if (select == nullptr) continue;
    selects_ = select->x;
    selected_ = make_rows(max_rows, plan.buffer(select->x).width);
  }
  const RowSizes row = sizes_of_row(plan);
  halves_ = DeviceMemory(max_rows * row.input * sizeof(unsigned short));
  powers_ = DeviceMemory(max_rows * sizeof(float));
  sums_ = DeviceMemory(max_rows * row.input / kRowUnit * sizeof(float));
  gate_ = make_rows(1, max_rows * row.inside);
  up_ = make_rows(1, max_rows * row.inside);
  down_ = make_rows(1, max_rows * row.down);
  chosen_ = DeviceMemory(max_rows * row.chosen * sizeof(int));
  likeliest_ = DeviceMemory(max_rows * sizeof(int));
}

Rows PassWorkspace::rows(BufferId id, std::size_t rows) const {
  Rows some = buffers_[static_cast<std::size_t>(id)];
  some.count = static_cast<unsigned>(rows);
  return some;
}

Rows PassWorkspace::selected(std::size_t rows) const {
  Rows some = selected_;
  some.count = static_cast<unsigned>(rows);
  return some;
}

PlanTables::PlanTables(const Plan& plan, CacheType type)
    : adds_result(plan.steps.size()), cache_type(type) {
  for (std::size_t i = 0; i + 1 < plan.steps.size(); ++i) {
    const auto* linear = std::get_if<LinearStep>(&plan.steps[i].kind);
    if (linear == nullptr) continue;
    const AddStep* sum = sum_after(plan, i + 1, linear->out);
    // Only a product that is alone in its launch: another product of the launch may write x.
    const auto* before = i == 0 ? nullptr : std::get_if<LinearStep>(&plan.steps[i - 1].kind);
    const bool is_alone = before == nullptr || before->in != linear->in;
    adds_result[i] = sum != nullptr && sum->x != linear->in && is_alone;
  }
  for (const Frequencies& table : plan.frequencies) {
    frequencies.emplace_back(std::span<const float>(table.values));
  }
  for (const Step& step : plan.steps) {
    const auto* attention = std::get_if<AttentionStep>(&step.kind);
    slopes.emplace_back(attention == nullptr ? std::span<const float>()
                                             : std::span<const float>(attention->slopes));
  }
  for (const CacheShape& shape : plan.caches) {
    cache_begin.push_back(static_cast<unsigned>(position_bytes));
    position_bytes += 2 * cached_bytes(type, shape.n_kv_heads, shape.head_dim);
  }
  for (const StateShape& shape : plan.states) {
    state_begin.push_back(static_cast<unsigned>(state_numbers));
    state_numbers += shape.rows * shape.width;
  }
}

void PassRows::clear() {
  for (auto* table :
       {&ids, &positions, &seen, &sequences, &text_positions, &answer_positions, &scored}) {
    table->clear();
  }
  given.clear();
}

bool run_pass(const CudaProgram& program, PassWorkspace& workspace, Recorder& recorder,
              const SequenceSlot* slots, PassRows& rows, MatrixView<float> logits,
              std::span<TokenId> likeliest) {
  Pass pass(program, workspace, slots, rows);
  const bool chooses = !likeliest.empty();
  const auto launch = [&] {
    pass.run();
    if (chooses) pass.choose();
  };
  // A pass of at most this many rows is recorded when the same numbers of rows come for the second
  // time. This is usual if several texts are continued by one token each.
  constexpr std::size_t kMostRecordedRows = 64;
  bool is_repeated = false;
  if (rows.ids.size() <= kMostRecordedRows) {
    is_repeated = recorder.run({rows.ids.size(), rows.scored.size(), chooses}, launch);
  } else {
    launch();
  }
  if (rows.scored.empty()) {
    finish();
  } else {
    check_launches();  // the downloads below wait for the kernels
  }
  if (chooses) pass.read_likeliest(likeliest);
  for (std::size_t t = 0; t < rows.scored.size(); ++t) {
    if (!chooses || likeliest[t] < 0) pass.read_logits(t, logits.row(t));
  }
  return is_repeated;
}

}  // namespace stagecraft::cuda

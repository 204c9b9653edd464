#pragma once

#include <string>

#include "model/plan.h"

namespace stagecraft {

// Writes a plan, step by step. The files of architectures/ use it through DecoderWriter. The plan
// must outlive the writer.
class PlanWriter {
 public:
  explicit PlanWriter(Plan& plan) : plan_(plan) {}

  BufferId buffer(std::string name, std::size_t width);
  WeightId weight(Weight weight);
  CacheId cache(CacheShape shape);
  StateId state(StateShape shape);
  FrequenciesId frequencies(Frequencies table);

  void layer(int index) { layer_ = index; }  // the layer of all following steps, or kNone
  void step(std::string name, StepKind kind);

  // Each adds a step and its weights. linear: `weight` + ".weight" and, if `bias`, `weight` +
  // ".bias", with the sizes of the buffers; `stored`: how both are stored. norm: the groups are as
  // wide as the weight.
  void linear(std::string name, BufferId out, BufferId in, const std::string& weight,
              bool bias = false, const Storage& stored = {});
  void norm(std::string name, BufferId out, BufferId in, Weight weight, float eps);

 protected:
  Plan& plan_;

 private:
  int layer_ = kNone;
};

}  // namespace stagecraft

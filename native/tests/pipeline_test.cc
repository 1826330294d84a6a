#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "engine/session.h"
#include "pipeline/frame_pipeline.h"
#include "pipeline/infer_stage.h"
#include "tests/check.h"
#include "tests/inverter_program.h"

namespace edgekit {
namespace {

using Outcome = FramePipeline::Outcome;

constexpr int kWidth = 8, kHeight = 4, kElements = 3 * kWidth * kHeight;
constexpr int64_t kLongNs = 60'000'000'000;

void* owner_of(int frame) { return reinterpret_cast<void*>(static_cast<intptr_t>(frame) + 1); }
int frame_of(const void* owner) { return static_cast<int>(reinterpret_cast<intptr_t>(owner)) - 1; }

// Frames of one grey each, the pass that makes them the input of the inverter, and a session of it.
class Rig {
 public:
  explicit Rig(const FramePipeline::Options& options) {
    preprocess::Config config;
    config.source_width = config.crop_width = config.resized_width = config.output_width = kWidth;
    config.source_height = config.crop_height = config.resized_height = config.output_height = kHeight;
    auto pass = preprocess::Preprocessor::create(config);
    EK_CHECK_MSG(pass.is_ok(), pass.status().message());
    pass_ = std::move(pass.value());
    const std::string bytes = test::inverter_program(kElements);
    auto session = Session::create(Program::from_memory(bytes.data(), bytes.size(), Isa::kScalar).value(), 2);
    session_ = std::move(session.value());
    pipeline_ = std::make_unique<FramePipeline>(options);
    stage_ = std::make_unique<InferStage>(*pipeline_, *session_, 1);
  }

  Outcome push(int frame, std::vector<void*>* dropped, size_t plan = 0) {
    const std::vector<uint8_t>& pixels = pixels_.emplace_back(kElements, static_cast<uint8_t>(frame % 256));
    preprocess::Image image;
    image.planes[0] = pixels.data();
    image.row_strides[0] = 3 * kWidth;
    return pipeline_->push({image, pass_.get(), owner_of(frame), plan}, kLongNs, dropped);
  }
  Outcome take(InferStage::Done* done) { return stage_->take(kLongNs, done); }
  void close(std::vector<void*>* left) {
    pipeline_->close(left);
    stage_->close(left);
  }
  FramePipeline& pipeline() { return *pipeline_; }
  InferStage& stage() { return *stage_; }

 private:
  std::deque<std::vector<uint8_t>> pixels_;  // of all frames: they stay where they are
  std::unique_ptr<preprocess::Preprocessor> pass_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<FramePipeline> pipeline_;
  std::unique_ptr<InferStage> stage_;
};

bool is_right(const InferStage::Done& done) {
  const uint8_t expected = test::inverted(static_cast<float>(frame_of(done.frame.owner) % 256));
  const auto* values = reinterpret_cast<const uint8_t*>(done.outputs.data());
  return std::all_of(values, values + kElements, [&](uint8_t value) { return value == expected; });
}

EK_TEST(every_frame_comes_out_once_in_order_with_its_own_outputs) {
  constexpr int kFrames = 300;
  Rig rig({2, 1, false});
  std::thread capture([&] {
    std::vector<void*> dropped;
    for (int i = 0; i < kFrames; ++i) EK_CHECK(rig.push(i, &dropped) == Outcome::kOk);
    EK_CHECK(dropped.empty());
    rig.pipeline().end();
  });
  std::vector<InferStage::Done> kept;  // memory that is held is not used again
  for (InferStage::Done done; rig.take(&done) == Outcome::kOk;) {
    EK_CHECK(frame_of(done.frame.owner) == static_cast<int>(kept.size()));
    EK_CHECK(done.frame.pushed_ns <= done.frame.preprocess_begin_ns && done.frame.preprocess_end_ns <= done.begin_ns);
    EK_CHECK(done.begin_ns <= done.end_ns && done.dropped == 0);
    kept.push_back(std::move(done));
  }
  capture.join();
  EK_CHECK(kept.size() == kFrames && rig.stage().status().is_ok());
  EK_CHECK(std::all_of(kept.begin(), kept.end(), is_right));
  std::vector<void*> left;
  rig.close(&left);
  EK_CHECK(left.empty());
}

EK_TEST(the_newest_frame_replaces_the_waiting_one) {
  constexpr int kFrames = 500;
  Rig rig({2, 1, true});
  std::vector<void*> back;
  std::thread capture([&] {
    for (int i = 0; i < kFrames; ++i) EK_CHECK(rig.push(i, &back) == Outcome::kOk);
    rig.pipeline().end();
  });
  std::vector<void*> taken;
  for (InferStage::Done done; rig.take(&done) == Outcome::kOk;) {
    EK_CHECK(is_right(done));
    taken.push_back(done.frame.owner);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  capture.join();
  EK_CHECK(!taken.empty() && frame_of(taken.back()) == kFrames - 1);
  EK_CHECK(std::is_sorted(taken.begin(), taken.end()));
  EK_CHECK(rig.pipeline().dropped() == static_cast<int64_t>(back.size()));
  back.insert(back.end(), taken.begin(), taken.end());
  std::sort(back.begin(), back.end());
  EK_CHECK(back.size() == kFrames && std::unique(back.begin(), back.end()) == back.end());
  rig.close(nullptr);
}

EK_TEST(a_failed_frame_ends_the_stage_after_the_frames_before_it) {
  Rig rig({2, 1, false});
  std::vector<void*> owners;
  std::thread capture([&] {
    int pushed = 0;
    while (rig.push(pushed, &owners, pushed == 5 ? 9 : 0) == Outcome::kOk) ++pushed;  // there is no plan 9
    EK_CHECK(pushed >= 6);
  });
  int count = 0;
  for (InferStage::Done done; rig.take(&done) == Outcome::kOk; ++count) EK_CHECK(is_right(done));
  EK_CHECK(count == 5);
  EK_CHECK(rig.stage().status().code() == StatusCode::kInvalidInput);
  std::vector<void*> left;
  rig.close(&left);
  capture.join();
  EK_CHECK(std::find(left.begin(), left.end(), owner_of(5)) != left.end());
}

EK_TEST(closing_at_any_time_gives_every_owner_back_once) {
  for (int round = 0; round < 60; ++round) {
    Rig rig({1 + round % 3, 1 + round % 2, round % 4 == 0});
    std::vector<void*> back, left;
    int pushed = 0;
    std::thread capture([&] {
      while (rig.push(pushed, &back) == Outcome::kOk) ++pushed;
    });
    for (int i = 0; i < round % 7; ++i) {
      InferStage::Done done;
      EK_CHECK(rig.take(&done) == Outcome::kOk);
      left.push_back(done.frame.owner);
    }
    std::vector<void*> others;
    std::thread closer([&] { rig.close(&others); });
    rig.close(&left);  // two threads at once
    closer.join();
    capture.join();
    left.insert(left.end(), others.begin(), others.end());
    back.insert(back.end(), left.begin(), left.end());
    std::sort(back.begin(), back.end());
    EK_CHECK(back.size() == static_cast<size_t>(pushed));
    EK_CHECK(std::unique(back.begin(), back.end()) == back.end());
  }
}

}  // namespace
}  // namespace edgekit

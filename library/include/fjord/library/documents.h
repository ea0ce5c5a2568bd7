#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/status.h"
#include "fjord/document/document.h"
#include "fjord/document/timestamp.h"

namespace fjord {

/// What a busy cluster refuses or delays last.
enum class ClientPriority : std::uint8_t {
  Default,     ///< Normal; of visits without a limit, Background.
  High,        ///< Refused last.
  Normal,      ///< Somebody waits for the answer.
  Background,  ///< Nobody waits: imports, exports.
};

/// What a read may return. All reads return every write that was acknowledged before the read began.
enum class ReadConsistency : std::uint8_t {
  Default,       ///< May also return a write that is still under way.
  Linearizable,  ///< Only what all replicas have. Waits for writes of the document that are under way.
};

/// When a write counts as stored on a node.
enum class WriteDurability : std::uint8_t {
  Default,  ///< As the storage nodes are configured.
  Process,  ///< Survives a crash of the process.
  Sync,     ///< Survives a loss of power.
};

struct WriteOptions {
  /// A selection that must hold for the stored document, else TestAndSetFailed: "item.price == 3".
  std::string condition = {};
  /// The stored document must have this version, else TestAndSetFailed. Timestamp{0}: there must be no document.
  std::optional<Timestamp> required_version = {};
  /// Put with a condition, and update: make the document if there is none.
  bool create = false;
  WriteDurability durability = WriteDurability::Default;
  ClientPriority priority = ClientPriority::Default;
  /// The key of an earlier attempt that ended in doubt: the write is applied at most once, also across programs.
  /// Empty: updates and conditional writes get a random one.
  std::string idempotency_key = {};
  Duration timeout{0};  ///< For the whole operation with its retries; 0: the client's.
};

struct ReadOptions {
  /// The fields to read: "title,year" of the document's type, or a field set such as "[id]"; empty: all.
  std::string fields = {};
  ReadConsistency consistency = ReadConsistency::Default;
  ClientPriority priority = ClientPriority::Default;
  /// Index of a storage node: its own replica answers, whatever the others hold. To compare replicas.
  std::optional<std::uint16_t> node = {};
  Duration timeout{0};  ///< 0: the client's.
};

/// Whether a write took effect.
enum class WriteOutcome : std::uint8_t {
  Applied,
  NotApplied,  ///< Certainly without effect; the status says why.
  InDoubt,     ///< It was sent, and no answer said whether it was applied. Repeat it with its idempotency key.
};

struct WriteResult {
  Status status;
  WriteOutcome outcome = WriteOutcome::NotApplied;
  Timestamp version;          ///< Of the document that was written.
  bool existed = false;       ///< The document existed before.
  Timestamp current_version;  ///< With TestAndSetFailed: of the stored document; 0 if there is none.
  std::string idempotency_key;

  explicit operator bool() const { return status.is_ok(); }
};

struct ReadResult {
  Status status;                     ///< NotFound if there is no such document.
  std::optional<Document> document;  ///< Set if the status is OK.
  Timestamp version;

  explicit operator bool() const { return status.is_ok(); }
  const Document* operator->() const { return &*document; }
  const Document& operator*() const { return *document; }
};

struct JsonResult {
  Status status;     ///< NotFound if there is no such document.
  std::string json;  ///< {"put": ID, "fields": {...}}
  Timestamp version;

  explicit operator bool() const { return status.is_ok(); }
};

}  // namespace fjord

// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Writes streams of beats from several channels through one AXI4 write port.
///
/// A command (`cmd_*`) says where the next stream of its channel goes: an address aligned to the
/// beat. The stream's beats follow on `in_*`; the one with `last` ends it and holds `words` valid
/// 32-bit words from lane 0 up (0 ... Lanes), the others are full and their `words` is ignored. A
/// last beat without words ends an empty or a complete stream and writes nothing. Streams of one
/// channel are written in order; bursts of different channels take turns.
///
///   cmd_*[c] -> [queue] -> (address of the next beat)
///   in_*[c]  ---------------> [data FIFO of FifoBeats] -------------------> W
///                       +--> [bursts that are complete] -- round robin --> AW   <- B: counted
///
///   in_*: b0 b1 b2/last(3 words) from 0x0fc0, 64 bytes each
///   AW:   0x0fc0 x 1 | 0x1000 x 2          W: b0/last | b1, b2/last with 12 strobes
///
/// A burst is issued when all of its data are in the FIFO: it has BurstBeats beats, or reaches a
/// 4 KiB boundary, or the stream has ended. So W never waits for the inside of a burst. W beats are
/// offered after their address was offered, in the order of the addresses, but do not wait until
/// it is accepted (a memory may want the data first).
///
/// *Marks.* `mark_*` asks to be told when everything before it is in memory: all streams whose
/// commands were accepted before the mark, or in the same cycle. The mark is taken at once unless
/// two are open, and what follows it is not held up. `acked_valid_o` rises when these streams have
/// ended and all of their bursts are answered; `acked_error_o`, `acked_addr_o` give the first
/// response among them that was not OKAY, and its address. Marks are acknowledged in order.
///
/// *Cancel.* While `cancel_i` is high, commands and beats are accepted and dropped, as is all that
/// is queued; no new address is issued (one that is already offered on AW stays, as AXI demands),
/// and bursts whose address was issued are completed with strobes 0. Streams that were begun are
/// gone: after cancel, a channel starts with a new command. It is not ready before the bursts are
/// completed. Marks are taken and acknowledged as ever, without the dropped streams.
///
/// Throughput  W transfers in every cycle while any channel has a complete burst and the memory
///             takes it, also with one-beat streams (CommandDepth >= 2), provided that Outstanding
///             bursts cover latency + 8 cycles. Each channel takes a beat per cycle.
/// Latency     2 cycles from a command to `in_ready_o`; from the beat that completes a burst 2
///             cycles to `m_aw_valid_o`, 3 to `m_w_valid_o`; 2 from the last B to `acked_valid_o`.
/// Stalls      `in_ready_o` is low without a command, and when the data FIFO or the queue of bursts
///             is full; it waits for no input of the channel. It and `cmd_ready_o` depend
///             combinationally on `cancel_i`, which the user drives from a register.
///             `m_b_ready_o` is high from one cycle after reset on.
/// Errors      Responses are noted for the mark; the engine goes on writing.
/// Reset       Drops everything; the memory must be reset too, so that no old response arrives.
module hotline_write_engine #(
  /// Width of the data bus: 64, 128, 256 or 512.
  parameter int unsigned BusBits = 512,
  /// Independent streams, at least 1.
  parameter int unsigned Channels = 5,
  /// Longest burst in beats; at most 4 KiB.
  parameter int unsigned BurstBeats = 16,
  /// Bursts in flight, at most.
  parameter int unsigned Outstanding = 64,
  /// Beats that each channel can hold, at least BurstBeats; twice as many keep W busy.
  parameter int unsigned FifoBeats = 32,
  /// Commands of a channel that wait behind the stream being taken.
  parameter int unsigned CommandDepth = 4,
  localparam int unsigned Lanes      = BusBits / 32,
  localparam int unsigned WordsWidth = $clog2(Lanes + 1)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  input  logic [Channels-1:0]                 cmd_valid_i,
  output logic [Channels-1:0]                 cmd_ready_o,
  input  logic [Channels-1:0][63:0]           cmd_addr_i,

  input  logic [Channels-1:0]                 in_valid_i,
  output logic [Channels-1:0]                 in_ready_o,
  input  logic [Channels-1:0][BusBits-1:0]    in_data_i,
  input  logic [Channels-1:0][WordsWidth-1:0] in_words_i,
  input  logic [Channels-1:0]                 in_last_i,

  input  logic                                mark_valid_i,
  output logic                                mark_ready_o,
  output logic                                acked_valid_o,
  input  logic                                acked_ready_i,
  output logic                                acked_error_o,
  output logic [63:0]                         acked_addr_o,

  input  logic                                cancel_i,
  /// Nothing queued, begun, in flight or marked. Falls in the cycle after a command is accepted.
  output logic                                idle_o,

  output logic                                m_aw_valid_o,
  input  logic                                m_aw_ready_i,
  output logic [63:0]                         m_aw_addr_o,
  output logic [7:0]                          m_aw_len_o,

  output logic                                m_w_valid_o,
  input  logic                                m_w_ready_i,
  output logic [BusBits-1:0]                  m_w_data_o,
  output logic [BusBits/8-1:0]                m_w_strb_o,
  output logic                                m_w_last_o,

  input  logic                                m_b_valid_i,
  output logic                                m_b_ready_o,
  input  logic [1:0]                          m_b_resp_i,
  input  logic [63:0]                         m_b_addr_i
);

  localparam int unsigned BusBytes     = BusBits / 8;
  localparam int unsigned ByteBits     = $clog2(BusBytes);
  localparam int unsigned PageBeats    = 4096 / BusBytes;
  localparam int unsigned PageBits     = $clog2(PageBeats);
  localparam int unsigned BeatsWidth   = $clog2(BurstBeats + 1);
  localparam int unsigned ChannelWidth = Channels > 1 ? $clog2(Channels) : 1;
  // Bursts that wait for AW: as many as the FIFO holds, some more for short streams.
  localparam int unsigned BurstDepth   = FifoBeats / BurstBeats + 4;
  // Addresses that run ahead of their data.
  localparam int unsigned AheadDepth   = 8;
  localparam int unsigned AheadCount   = $clog2(AheadDepth + 1);
  // Tags tell the bursts before and after up to two open marks apart.
  localparam int unsigned TagBits      = 2;
  localparam int unsigned Tags         = 4;
  localparam int unsigned OpenWidth    = $clog2(Channels * (CommandDepth + 2 + BurstDepth) + 1);
  localparam int unsigned FlightWidth  = $clog2(Outstanding + 1);

  if (BusBits != 64 && BusBits != 128 && BusBits != 256 && BusBits != 512) begin : gen_bad_bus
    $fatal(1, "%m: BusBits must be 64, 128, 256 or 512");
  end
  if (Channels < 1 || Outstanding < 1 || CommandDepth < 1) begin : gen_bad_size
    $fatal(1, "%m: Channels, Outstanding and CommandDepth must be at least 1");
  end
  if (BurstBeats < 1 || BurstBeats > 256 || BurstBeats > PageBeats) begin : gen_bad_burst
    $fatal(1, "%m: BurstBeats must be 1 ... 256 and a burst at most 4 KiB");
  end
  if (FifoBeats < BurstBeats) begin : gen_bad_fifo
    $fatal(1, "%m: FifoBeats must be at least BurstBeats, else no burst is ever complete");
  end

  logic [TagBits-1:0] tag_q;     // of commands accepted now
  logic               drain_q;   // bursts issued before a cancel are not yet completed

  // ---------------------------------------------------------------------------------------------
  // Channels: cut the streams into bursts as they come in
  // ---------------------------------------------------------------------------------------------

  // Per channel, this cycle.
  logic [Channels-1:0]                 command_accepted;
  logic [Channels-1:0]                 stream_ends;
  logic [Channels-1:0][TagBits-1:0]    stream_tag;
  logic [Channels-1:0]                 burst_push;

  logic [Channels-1:0]                 burst_valid;
  logic [Channels-1:0]                 burst_pop;
  logic [Channels-1:0][63:0]           burst_addr;
  logic [Channels-1:0][BeatsWidth-1:0] burst_beats;
  logic [Channels-1:0][TagBits-1:0]    burst_tag;

  logic [Channels-1:0]                 data_valid;
  logic [Channels-1:0]                 data_pop;
  logic [Channels-1:0][BusBits-1:0]    data;
  logic [Channels-1:0][WordsWidth-1:0] data_words;

  for (genvar c = 0; c < int'(Channels); c++) begin : gen_channel
    logic                  command_ready;
    logic                  command_valid;
    logic                  command_pop;
    logic [63:0]           command_addr;
    logic [TagBits-1:0]    command_tag;

    logic                  stream_q;      // a stream may come in
    logic [63:0]           start_q;       // address of the open burst
    logic [PageBits-1:0]   page_q;        // place of the next beat in its page
    logic [BeatsWidth-1:0] beats_q;       // beats of the open burst
    logic [TagBits-1:0]    stream_tag_q;

    logic                  data_ready;
    logic                  burst_ready;
    logic                  beat;
    logic                  beat_real;
    logic                  beat_full;
    logic [BeatsWidth-1:0] beats_d;

    // Cancelled commands and beats are taken; otherwise nothing is until the drain is over.
    assign cmd_ready_o[c]      = cancel_i || (command_ready && !drain_q);
    assign in_ready_o[c]       = cancel_i || (stream_q && data_ready && burst_ready);
    assign command_accepted[c] = cmd_valid_i[c] && command_ready && !drain_q && !cancel_i;

    hotline_stream_fifo #(
      .Width   (64 + TagBits),
      .Depth   (CommandDepth),
      .LutDepth(CommandDepth)  // never block RAM
    ) u_commands (
      .clk_i,
      .rst_ni,
      .flush_i    (cancel_i),
      .in_valid_i (command_accepted[c]),
      .in_ready_o (command_ready),
      .in_data_i  ({tag_q, cmd_addr_i[c]}),
      .out_valid_o(command_valid),
      .out_ready_i(command_pop),
      .out_data_o ({command_tag, command_addr}),
      .count_o    ()
    );

    assign beat           = in_valid_i[c] && stream_q && data_ready && burst_ready && !cancel_i;
    assign beat_real      = beat && !(in_last_i[c] && in_words_i[c] == '0);
    assign beats_d        = beats_q + BeatsWidth'(beat_real);
    assign beat_full      = beat_real && (beats_d == BeatsWidth'(BurstBeats) || &page_q);
    assign stream_ends[c] = beat && in_last_i[c];
    assign burst_push[c]  = beat_full || (stream_ends[c] && beats_d != '0);
    assign stream_tag[c]  = stream_tag_q;
    assign command_pop    = !stream_q || stream_ends[c];

    always_ff @(posedge clk_i) begin
      if (!rst_ni || cancel_i) begin
        stream_q <= 1'b0;
      end else if (command_pop) begin
        stream_q <= command_valid;
      end
    end

    // Not reset: loaded with each stream.
    always_ff @(posedge clk_i) begin
      if (command_pop) begin
        start_q      <= command_addr;
        page_q       <= command_addr[ByteBits+:PageBits];
        beats_q      <= '0;
        stream_tag_q <= command_tag;
      end else begin
        if (beat_real) begin
          page_q <= page_q + 1'b1;
        end
        beats_q <= burst_push[c] ? '0 : beats_d;
        if (burst_push[c]) begin
          start_q <= start_q + (64'(beats_d) << ByteBits);
        end
      end
    end

    hotline_stream_fifo #(
      .Width(BusBits + WordsWidth),
      .Depth(FifoBeats)
    ) u_data (
      .clk_i,
      .rst_ni,
      .flush_i    (cancel_i),
      .in_valid_i (beat_real),
      .in_ready_o (data_ready),
      .in_data_i  ({in_last_i[c] ? in_words_i[c] : WordsWidth'(Lanes), in_data_i[c]}),
      .out_valid_o(data_valid[c]),
      .out_ready_i(data_pop[c]),
      .out_data_o ({data_words[c], data[c]}),
      .count_o    ()
    );

    hotline_stream_fifo #(
      .Width   (TagBits + BeatsWidth + 64),
      .Depth   (BurstDepth),
      .LutDepth(BurstDepth)  // never block RAM: its latency is part of the block's
    ) u_bursts (
      .clk_i,
      .rst_ni,
      .flush_i    (cancel_i),
      .in_valid_i (burst_push[c]),
      .in_ready_o (burst_ready),
      .in_data_i  ({stream_tag_q, beats_d, start_q}),
      .out_valid_o(burst_valid[c]),
      .out_ready_i(burst_pop[c]),
      .out_data_o ({burst_tag[c], burst_beats[c], burst_addr[c]}),
      .count_o    ()
    );

`ifndef SYNTHESIS
    a_cmd_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
        cmd_valid_i[c] && !cmd_ready_o[c] |=> cmd_valid_i[c] && $stable(cmd_addr_i[c]));
    a_cmd_aligned : assert property (@(posedge clk_i) disable iff (!rst_ni)
        cmd_valid_i[c] |-> cmd_addr_i[c][ByteBits-1:0] == '0);
    a_in_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
        in_valid_i[c] && !in_ready_o[c]
        |=> in_valid_i[c] && $stable(in_data_i[c]) && $stable(in_last_i[c])
            && (!in_last_i[c] || $stable(in_words_i[c])));
    a_words : assert property (@(posedge clk_i) disable iff (!rst_ni)
        in_valid_i[c] && in_last_i[c] |-> 32'(in_words_i[c]) <= Lanes);
    c_empty_last : cover property (@(posedge clk_i) disable iff (!rst_ni)
        stream_ends[c] && !beat_real && beats_q != '0);
`endif
  end

  // ---------------------------------------------------------------------------------------------
  // AW: one burst per cycle, in turn; the order of the addresses is kept for W and for B
  // ---------------------------------------------------------------------------------------------

  logic [Channels-1:0]     arbiter_grant;
  logic [ChannelWidth-1:0] arbiter_index;
  logic                    issue_possible;
  logic                    issue;
  logic                    aw_valid_q;
  logic [63:0]             aw_addr_q;
  logic [7:0]              aw_len_q;

  logic                    ahead_ready;
  logic                    ahead_valid;
  logic                    ahead_pop;
  logic [ChannelWidth-1:0] ahead_channel;
  logic [BeatsWidth-1:0]   ahead_beats;
  logic [AheadCount-1:0]   ahead_count;

  logic                    flight_ready;
  logic                    flight_valid;
  logic [TagBits-1:0]      flight_tag;
  logic                    b_valid_q;

  assign issue_possible = ahead_ready && flight_ready && (!aw_valid_q || m_aw_ready_i)
                          && !cancel_i && !drain_q;
  assign issue          = issue_possible && burst_valid != '0;
  assign burst_pop      = issue_possible ? arbiter_grant : '0;

  hotline_rr_arbiter #(
    .Count(Channels)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i    (burst_valid),
    .advance_i(issue_possible),
    .grant_o  (arbiter_grant),
    .index_o  (arbiter_index)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_valid_q <= 1'b0;
    end else if (!aw_valid_q || m_aw_ready_i) begin
      aw_valid_q <= issue;
    end
  end

  // Not reset: qualified by aw_valid_q.
  always_ff @(posedge clk_i) begin
    if (!aw_valid_q || m_aw_ready_i) begin
      aw_addr_q <= burst_addr[arbiter_index];
      aw_len_q  <= 8'(burst_beats[arbiter_index] - 1'b1);
    end
  end

  assign m_aw_valid_o = aw_valid_q;
  assign m_aw_addr_o  = aw_addr_q;
  assign m_aw_len_o   = aw_len_q;

  hotline_stream_fifo #(
    .Width(ChannelWidth + BeatsWidth),
    .Depth(AheadDepth)
  ) u_ahead (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (issue),
    .in_ready_o (ahead_ready),
    .in_data_i  ({arbiter_index, burst_beats[arbiter_index]}),
    .out_valid_o(ahead_valid),
    .out_ready_i(ahead_pop),
    .out_data_o ({ahead_channel, ahead_beats}),
    .count_o    (ahead_count)
  );

  hotline_stream_fifo #(
    .Width  (TagBits),
    .Depth  (Outstanding),
    .LutBits(8192)  // narrow: not worth a block RAM
  ) u_flight (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (issue),
    .in_ready_o (flight_ready),
    .in_data_i  (burst_tag[arbiter_index]),
    .out_valid_o(flight_valid),
    .out_ready_i(b_valid_q),
    .out_data_o (flight_tag),
    .count_o    ()
  );

  // ---------------------------------------------------------------------------------------------
  // W: the data of the burst at the head of the order; nothing but strobes 0 after a cancel
  // ---------------------------------------------------------------------------------------------

  logic                  w_valid_q;
  logic [BusBits-1:0]    w_data_q;
  logic [BusBits/8-1:0]  w_strb_q;
  logic                  w_last_q;
  logic [BeatsWidth-1:0] w_beat_q;   // beats of the head burst taken
  logic                  w_free;
  logic                  w_take;
  logic                  w_last;
  logic                  dead;
  logic [Lanes-1:0]      w_lanes;

  assign dead      = cancel_i || drain_q;
  assign w_free    = !w_valid_q || m_w_ready_i;
  assign w_take    = w_free && ahead_valid && (dead || data_valid[ahead_channel]);
  assign w_last    = w_beat_q + 1'b1 == ahead_beats;
  assign ahead_pop = w_take && w_last;

  always_comb begin
    data_pop = '0;
    data_pop[ahead_channel] = w_free && ahead_valid && !dead;
    for (int unsigned i = 0; i < Lanes; i++) begin
      w_lanes[i] = !dead && i < 32'(data_words[ahead_channel]);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      w_valid_q <= 1'b0;
      w_beat_q  <= '0;
      drain_q   <= 1'b0;
    end else begin
      if (w_free) begin
        w_valid_q <= w_take;
      end
      if (w_take) begin
        w_beat_q <= w_last ? '0 : w_beat_q + 1'b1;
      end
      drain_q <= cancel_i || (drain_q && ahead_count != '0);
    end
  end

  // Not reset: qualified by w_valid_q.
  always_ff @(posedge clk_i) begin
    if (w_free) begin
      w_data_q <= data[ahead_channel];
      w_last_q <= w_last;
      for (int unsigned i = 0; i < Lanes; i++) begin
        w_strb_q[i*4+:4] <= {4{w_lanes[i]}};
      end
    end
  end

  assign m_w_valid_o = w_valid_q;
  assign m_w_data_o  = w_data_q;
  assign m_w_strb_o  = w_strb_q;
  assign m_w_last_o  = w_last_q;

  // ---------------------------------------------------------------------------------------------
  // B and marks: per tag, what is not yet issued (`open`) and not yet answered (`flight`)
  // ---------------------------------------------------------------------------------------------

  logic        b_ready_q;
  logic        b_error_q;
  logic [63:0] b_addr_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      b_ready_q <= 1'b0;
      b_valid_q <= 1'b0;
    end else begin
      b_ready_q <= 1'b1;
      b_valid_q <= m_b_valid_i && b_ready_q;
    end
  end

  // Not reset: qualified by b_valid_q.
  always_ff @(posedge clk_i) begin
    b_error_q <= m_b_resp_i != 2'b00;
    b_addr_q  <= m_b_addr_i;
  end

  assign m_b_ready_o = b_ready_q;

  logic [1:0]            marks_q;       // open marks
  logic [TagBits-1:0]    oldest;        // tag of the oldest open mark
  logic                  mark_transfer;
  logic                  acked_transfer;
  logic [Tags-1:0]       tag_clear;     // nothing open or in flight
  logic [Tags-1:0]       tag_error_q;
  logic [Tags-1:0][63:0] tag_addr_q;

  for (genvar t = 0; t < int'(Tags); t++) begin : gen_tag
    // Streams begun and not ended, and bursts complete and not issued.
    logic [OpenWidth-1:0]   open_q;
    logic [OpenWidth-1:0]   open_d;
    logic [FlightWidth-1:0] flight_q;
    logic                   issue_here;
    logic                   answer_here;

    assign issue_here  = issue && burst_tag[arbiter_index] == TagBits'(t);
    assign answer_here = b_valid_q && flight_valid && flight_tag == TagBits'(t);

    always_comb begin
      open_d = open_q - OpenWidth'(issue_here);
      for (int unsigned c = 0; c < Channels; c++) begin
        open_d = open_d
                 + OpenWidth'(command_accepted[c] && tag_q == TagBits'(t))
                 + OpenWidth'(burst_push[c] && stream_tag[c] == TagBits'(t))
                 - OpenWidth'(stream_ends[c] && stream_tag[c] == TagBits'(t));
      end
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        open_q         <= '0;
        flight_q       <= '0;
        tag_error_q[t] <= 1'b0;
      end else begin
        open_q   <= cancel_i ? '0 : open_d;
        flight_q <= flight_q + FlightWidth'(issue_here) - FlightWidth'(answer_here);
        if (acked_transfer && oldest == TagBits'(t)) begin
          tag_error_q[t] <= 1'b0;
        end else if (answer_here && b_error_q) begin
          tag_error_q[t] <= 1'b1;
        end
      end
    end

    // Not reset: qualified by tag_error_q.
    always_ff @(posedge clk_i) begin
      if (answer_here && b_error_q && !tag_error_q[t]) begin
        tag_addr_q[t] <= b_addr_q;
      end
    end

    assign tag_clear[t] = open_q == '0 && flight_q == '0;
  end

  assign oldest         = tag_q - TagBits'(marks_q);
  assign mark_ready_o   = marks_q < 2'd2;
  assign mark_transfer  = mark_valid_i && mark_ready_o;
  assign acked_valid_o  = marks_q != 2'd0 && tag_clear[oldest];
  assign acked_error_o  = tag_error_q[oldest];
  assign acked_addr_o   = tag_addr_q[oldest];
  assign acked_transfer = acked_valid_o && acked_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tag_q   <= '0;
      marks_q <= '0;
    end else begin
      tag_q   <= tag_q + TagBits'(mark_transfer);
      marks_q <= marks_q + 2'(mark_transfer) - 2'(acked_transfer);
    end
  end

  assign idle_o = &tag_clear && marks_q == 2'd0 && !drain_q;

`ifndef SYNTHESIS
  a_aw_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      m_aw_valid_o && !m_aw_ready_i
      |=> m_aw_valid_o && $stable(m_aw_addr_o) && $stable(m_aw_len_o));
  a_aw_page : assert property (@(posedge clk_i) disable iff (!rst_ni)
      m_aw_valid_o |-> 32'(m_aw_addr_o[11:0]) + (32'(m_aw_len_o) + 1) * BusBytes <= 4096);
  a_aw_cancel : assert property (@(posedge clk_i) disable iff (!rst_ni)
      cancel_i && (!m_aw_valid_o || m_aw_ready_i) |=> !m_aw_valid_o);
  a_w_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      m_w_valid_o && !m_w_ready_i
      |=> m_w_valid_o && $stable(m_w_data_o) && $stable(m_w_strb_o) && $stable(m_w_last_o));
  a_b_solicited : assert property (@(posedge clk_i) disable iff (!rst_ni)
      b_valid_q |-> flight_valid);
  a_mark_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      mark_valid_i && !mark_ready_o |=> mark_valid_i);
  a_acked_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      acked_valid_o && !acked_ready_i
      |=> acked_valid_o && $stable(acked_error_o) && $stable(acked_addr_o));
  // All data of an issued burst are in the FIFO: W never waits inside one.
  a_data_there : assert property (@(posedge clk_i) disable iff (!rst_ni)
      ahead_valid && !dead |-> data_valid[ahead_channel]);
`endif

endmodule

// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Reads streams of beats for several channels through one AXI4 read port.
///
/// A command (`cmd_*`) asks for `beats` bus words from an aligned address. Each channel returns the
/// beats of its commands in order on `out_*`; `last` marks the final beat of a command. Commands
/// are split into legal bursts: at most `BurstBeats`, none across a 4 KiB boundary. A burst is
/// issued only when the channel's FIFO has room for all of its beats, so the read data channel is
/// never stalled and channels do not block each other.
///
///   cmd_*[c] -> [queue] -> [splitter] -> [next burst] --+ round robin
///                                                       +--> AR   (the order of bursts is kept)
///   out_*[c] <- [FIFO of FifoBeats] <--------------------- R
///
///   command (0x0fc0, 3 beats of 64 bytes)   AR: 0x0fc0 x 1 | 0x1000 x 2
///   out_*                                       b0 | b1 | b2 last
///
/// *Errors of a beat.* `out_error_o` says that the response was not OKAY. The beat's data are
/// then replaced by its address, which is why `out_addr_o` costs no storage; it means nothing for
/// other beats.
///
/// *Cancel.* A pulse on `cancel_i[c]` concerns the command whose beats the consumer reads now: the
/// oldest accepted one whose `last` has not been popped before this cycle (popping it in this very
/// cycle makes the pulse void; so does having no such command). What was issued still arrives. If
/// the real last beat was not requested any more, the stream ends with one beat that has `void` and
/// `last` set, after the beats that were requested. `void` beats carry neither data nor error, and
/// their data lines may change. Later commands of the channel are not affected.
///
/// *Flush.* While `flush_i` is high no new address is issued (one that is already offered on AR
/// stays, as AXI demands). Every command, queued or newly accepted, ends as if it had been
/// cancelled when its turn came: with its real last beat if all was issued, else with a void one.
/// So a consumer that pops everything until `idle_o` needs no other knowledge.
///
/// Throughput  R is busy in every cycle if the memory and the consumers keep up and
///             FifoBeats >= latency + BurstBeats + 8 and Outstanding bursts cover latency + 8
///             cycles. One burst per cycle is issued, also for one-beat commands of one channel
///             (CommandDepth >= 2).
/// Latency     4 cycles from a command to `m_ar_valid_o`; 2 (LUT RAM FIFO) or 3 (block RAM FIFO)
///             cycles from R to `out_valid_o`.
/// Stalls      `m_r_ready_o` is high from one cycle after reset on. `cmd_ready_o` falls when
///             CommandDepth commands wait. A channel issues nothing while its FIFO has not enough
///             room, all channels nothing while `Outstanding` bursts are in flight.
/// Errors      Per beat, see above; the other beats of a burst and later bursts are delivered as
///             they come. A command goes on after an error until it is cancelled.
/// Reset       Drops everything; the memory must be reset too, so that no old response arrives.
module hotline_read_engine #(
  /// Width of the data bus: 64, 128, 256 or 512.
  parameter int unsigned BusBits = 512,
  /// Independent streams, at least 1.
  parameter int unsigned Channels = 2,
  /// Longest burst in beats; at most 4 KiB.
  parameter int unsigned BurstBeats = 16,
  /// Bursts in flight, at most.
  parameter int unsigned Outstanding = 64,
  /// Beats that each channel can hold or await, at least BurstBeats.
  parameter int unsigned FifoBeats = 256,
  /// Commands of a channel that wait behind the one being split.
  parameter int unsigned CommandDepth = 4
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  input  logic [Channels-1:0]              cmd_valid_i,
  output logic [Channels-1:0]              cmd_ready_o,
  input  logic [Channels-1:0][63:0]        cmd_addr_i,
  input  logic [Channels-1:0][31:0]        cmd_beats_i,

  output logic [Channels-1:0]              out_valid_o,
  input  logic [Channels-1:0]              out_ready_i,
  output logic [Channels-1:0][BusBits-1:0] out_data_o,
  output logic [Channels-1:0]              out_error_o,
  output logic [Channels-1:0][63:0]        out_addr_o,
  output logic [Channels-1:0]              out_last_o,
  output logic [Channels-1:0]              out_void_o,

  input  logic [Channels-1:0]              cancel_i,
  input  logic                             flush_i,
  /// Nothing in flight, no command, FIFOs empty. Falls in the cycle after a command is accepted.
  output logic                             idle_o,

  output logic                             m_ar_valid_o,
  input  logic                             m_ar_ready_i,
  output logic [63:0]                      m_ar_addr_o,
  output logic [7:0]                       m_ar_len_o,

  input  logic                             m_r_valid_i,
  output logic                             m_r_ready_o,
  input  logic [BusBits-1:0]               m_r_data_i,
  input  logic [1:0]                       m_r_resp_i,
  input  logic                             m_r_last_i,
  input  logic [63:0]                      m_r_addr_i
);

  localparam int unsigned BusBytes     = BusBits / 8;
  localparam int unsigned ByteBits     = $clog2(BusBytes);
  localparam int unsigned PageBeats    = 4096 / BusBytes;
  localparam int unsigned PageBits     = $clog2(PageBeats);
  localparam int unsigned BeatsWidth   = $clog2(BurstBeats + 1);
  localparam int unsigned CreditWidth  = $clog2(FifoBeats + 1);
  localparam int unsigned ChannelWidth = Channels > 1 ? $clog2(Channels) : 1;
  localparam int unsigned CommandCount = $clog2(CommandDepth + 1);
  localparam int unsigned OrderCount   = $clog2(Outstanding + 1);

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
    $fatal(1, "%m: FifoBeats must be at least BurstBeats, else no burst ever fits");
  end

  // ---------------------------------------------------------------------------------------------
  // Issue: one burst per cycle into the AR register and the order FIFO
  // ---------------------------------------------------------------------------------------------

  logic [Channels-1:0]                 burst_request;
  logic [Channels-1:0][63:0]           burst_addr;
  logic [Channels-1:0][BeatsWidth-1:0] burst_beats;
  logic [Channels-1:0]                 burst_final;
  logic [Channels-1:0]                 burst_grant;
  logic [Channels-1:0]                 arbiter_grant;
  logic [ChannelWidth-1:0]             arbiter_index;

  logic                    ar_valid_q;
  logic [63:0]             ar_addr_q;
  logic [7:0]              ar_len_q;
  logic                    issue_possible;
  logic                    issue;

  logic                    order_ready;
  logic                    order_valid;
  logic                    order_pop;
  logic [ChannelWidth-1:0] order_channel;
  logic                    order_final;
  logic [OrderCount-1:0]   order_count;

  assign issue_possible = order_ready && (!ar_valid_q || m_ar_ready_i);
  assign issue          = issue_possible && burst_request != '0;
  assign burst_grant    = issue_possible ? arbiter_grant : '0;

  hotline_rr_arbiter #(
    .Count(Channels)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i    (burst_request),
    .advance_i(issue_possible),
    .grant_o  (arbiter_grant),
    .index_o  (arbiter_index)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
    end else if (!ar_valid_q || m_ar_ready_i) begin
      ar_valid_q <= issue;
    end
  end

  // Not reset: qualified by ar_valid_q.
  always_ff @(posedge clk_i) begin
    if (!ar_valid_q || m_ar_ready_i) begin
      ar_addr_q <= burst_addr[arbiter_index];
      ar_len_q  <= 8'(burst_beats[arbiter_index] - 1'b1);
    end
  end

  assign m_ar_valid_o = ar_valid_q;
  assign m_ar_addr_o  = ar_addr_q;
  assign m_ar_len_o   = ar_len_q;

  hotline_stream_fifo #(
    .Width  (ChannelWidth + 1),
    .Depth  (Outstanding),
    .LutBits(8192)  // narrow: not worth a block RAM
  ) u_order (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (issue),
    .in_ready_o (order_ready),
    .in_data_i  ({burst_final[arbiter_index], arbiter_index}),
    .out_valid_o(order_valid),
    .out_ready_i(order_pop),
    .out_data_o ({order_final, order_channel}),
    .count_o    (order_count)
  );

  // ---------------------------------------------------------------------------------------------
  // Return: one register, then the FIFO of the channel at the head of the order
  // ---------------------------------------------------------------------------------------------

  logic               r_ready_q;
  logic               r_valid_q;
  logic [BusBits-1:0] r_data_q;
  logic               r_error_q;
  logic               r_last_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      r_ready_q <= 1'b0;
      r_valid_q <= 1'b0;
    end else begin
      r_ready_q <= 1'b1;
      r_valid_q <= m_r_valid_i && r_ready_q;
    end
  end

  // Not reset: qualified by r_valid_q.
  always_ff @(posedge clk_i) begin
    r_data_q  <= m_r_data_i;
    r_error_q <= m_r_resp_i != 2'b00;
    r_last_q  <= m_r_last_i;
    if (m_r_resp_i != 2'b00) begin
      r_data_q[63:0] <= m_r_addr_i;
    end
  end

  assign m_r_ready_o = r_ready_q;
  assign order_pop   = r_valid_q && r_last_q;

  // ---------------------------------------------------------------------------------------------
  // Channels
  // ---------------------------------------------------------------------------------------------

  logic [Channels-1:0] channel_idle;

  for (genvar c = 0; c < int'(Channels); c++) begin : gen_channel

    // Command queue.
    logic                    command_valid;
    logic                    command_pop;
    logic [63:0]             command_addr;
    logic [31:0]             command_beats;
    logic [CommandCount-1:0] command_count;

    hotline_stream_fifo #(
      .Width   (64 + 32),
      .Depth   (CommandDepth),
      .LutDepth(CommandDepth)  // never block RAM
    ) u_commands (
      .clk_i,
      .rst_ni,
      .flush_i    (1'b0),
      .in_valid_i (cmd_valid_i[c]),
      .in_ready_o (cmd_ready_o[c]),
      .in_data_i  ({cmd_addr_i[c], cmd_beats_i[c]}),
      .out_valid_o(command_valid),
      .out_ready_i(command_pop),
      .out_data_o ({command_addr, command_beats}),
      .count_o    (command_count)
    );

    // Splitter: `split_left_q` beats from `split_addr_q` on are not yet in a burst.
    logic                  split_valid_q;
    logic [63:0]           split_addr_q;
    logic [31:0]           split_left_q;
    logic [PageBits:0]     page_beats;
    logic [BeatsWidth-1:0] longest;
    logic [BeatsWidth-1:0] split_beats;
    logic                  split_final;

    // Next burst, waiting for credit and its turn.
    logic                  burst_valid_q;
    logic [63:0]           burst_addr_q;
    logic [BeatsWidth-1:0] burst_beats_q;
    logic                  burst_final_q;
    logic                  burst_load;

    // Accounting.
    logic [CreditWidth-1:0] free_q;       // beats neither held nor awaited
    logic [CreditWidth-1:0] complete_q;   // commands issued to the end, `last` not yet popped
    logic                   kill_q;       // drop what is left of the consumer's command
    logic                   kill_now;     // ... in this cycle
    logic                   void_q;       // the consumer's command ends with a void beat ...
    logic [CreditWidth-1:0] void_left_q;  // ... after that many real beats
    logic                   void_now;

    logic                   fifo_ready;
    logic                   fifo_valid;
    logic                   fifo_pop;
    logic                   fifo_error;
    logic                   fifo_last;
    logic [CreditWidth-1:0] fifo_count;
    logic                   fifo_push;

    assign page_beats  = (PageBits + 1)'(PageBeats) - {1'b0, split_addr_q[ByteBits+:PageBits]};
    assign longest     = 32'(page_beats) < BurstBeats ? BeatsWidth'(page_beats)
                                                      : BeatsWidth'(BurstBeats);
    assign split_final = split_left_q <= 32'(longest);
    assign split_beats = split_final ? BeatsWidth'(split_left_q) : longest;

    assign burst_load  = split_valid_q && !kill_q && (!burst_valid_q || burst_grant[c]);
    // In a kill cycle the queue is popped only if the command to drop is still in it.
    assign command_pop = kill_q ? !burst_valid_q && !split_valid_q
                                : !split_valid_q || (burst_load && split_final);
    assign kill_now    = kill_q && (burst_valid_q || split_valid_q || command_valid);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        split_valid_q <= 1'b0;
        burst_valid_q <= 1'b0;
      end else if (kill_q) begin
        // The oldest unissued command: in the burst register, and also in the splitter unless that
        // burst was its final one; else in the splitter; else in the queue.
        burst_valid_q <= 1'b0;
        if (!(burst_valid_q && burst_final_q)) begin
          split_valid_q <= 1'b0;
        end
      end else begin
        if (command_pop) begin
          split_valid_q <= command_valid;
        end
        if (!burst_valid_q || burst_grant[c]) begin
          burst_valid_q <= split_valid_q;
        end
      end
    end

    // Not reset: qualified by the valid bits.
    always_ff @(posedge clk_i) begin
      if (command_pop) begin
        split_addr_q <= command_addr;
        split_left_q <= command_beats;
      end else if (burst_load) begin
        split_addr_q <= split_addr_q + (64'(split_beats) << ByteBits);
        split_left_q <= split_left_q - 32'(split_beats);
      end
      if (burst_load) begin
        burst_addr_q  <= split_addr_q;
        burst_beats_q <= split_beats;
        burst_final_q <= split_final;
      end
    end

    assign burst_request[c] = burst_valid_q && !kill_q && !flush_i
                              && free_q >= CreditWidth'(burst_beats_q);
    assign burst_addr[c]    = burst_addr_q;
    assign burst_beats[c]   = burst_beats_q;
    assign burst_final[c]   = burst_final_q;

    // A command may be killed while none before it is open and it is not issued to the end.
    logic kill_start;
    assign kill_start = (cancel_i[c] || flush_i) && !kill_q && !void_q && complete_q == '0
                        && (burst_valid_q || split_valid_q || command_count != '0)
                        && !(burst_grant[c] && burst_final_q);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        free_q      <= CreditWidth'(FifoBeats);
        complete_q  <= '0;
        kill_q      <= 1'b0;
        void_q      <= 1'b0;
        void_left_q <= '0;
      end else begin
        free_q     <= free_q + CreditWidth'(fifo_pop)
                      - (burst_grant[c] ? CreditWidth'(burst_beats_q) : '0);
        complete_q <= complete_q + CreditWidth'(burst_grant[c] && burst_final_q)
                      - CreditWidth'(fifo_pop && fifo_last);
        if (kill_now) begin
          // All beats held or awaited belong to the killed command: none before it is open.
          kill_q      <= 1'b0;
          void_q      <= 1'b1;
          void_left_q <= CreditWidth'(FifoBeats) - free_q - CreditWidth'(fifo_pop);
        end else begin
          kill_q <= kill_q || kill_start;
          if (void_now && out_ready_i[c]) begin
            void_q <= 1'b0;
          end
          if (fifo_pop && void_left_q != '0) begin
            void_left_q <= void_left_q - 1'b1;
          end
        end
      end
    end

    // Data FIFO and output.
    assign fifo_push = r_valid_q && order_valid && order_channel == ChannelWidth'(c);
    assign void_now  = void_q && void_left_q == '0;
    assign fifo_pop  = fifo_valid && out_ready_i[c] && !void_now;

    hotline_stream_fifo #(
      .Width(BusBits + 2),
      .Depth(FifoBeats)
    ) u_data (
      .clk_i,
      .rst_ni,
      .flush_i    (1'b0),
      .in_valid_i (fifo_push),
      .in_ready_o (fifo_ready),
      .in_data_i  ({r_last_q && order_final, r_error_q, r_data_q}),
      .out_valid_o(fifo_valid),
      .out_ready_i(out_ready_i[c] && !void_now),
      .out_data_o ({fifo_last, fifo_error, out_data_o[c]}),
      .count_o    (fifo_count)
    );

    assign out_valid_o[c]  = fifo_valid || void_now;
    assign out_error_o[c]  = fifo_error && !void_now;
    assign out_addr_o[c]   = out_data_o[c][63:0];
    assign out_last_o[c]   = fifo_last || void_now;
    assign out_void_o[c]   = void_now;

    assign channel_idle[c] = free_q == CreditWidth'(FifoBeats) && command_count == '0
                             && !split_valid_q && !burst_valid_q && !void_q;

`ifndef SYNTHESIS
    a_cmd_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
        cmd_valid_i[c] && !cmd_ready_o[c]
        |=> cmd_valid_i[c] && $stable(cmd_addr_i[c]) && $stable(cmd_beats_i[c]));
    a_cmd_legal : assert property (@(posedge clk_i) disable iff (!rst_ni)
        cmd_valid_i[c] |-> cmd_beats_i[c] != '0 && cmd_addr_i[c][ByteBits-1:0] == '0);
    a_out_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
        out_valid_o[c] && !out_ready_i[c]
        |=> out_valid_o[c] && $stable(out_last_o[c]) && $stable(out_void_o[c])
            && $stable(out_error_o[c]) && (out_void_o[c] || $stable(out_data_o[c])));
    a_credit : assert property (@(posedge clk_i) disable iff (!rst_ni)
        fifo_push |-> fifo_ready);
    a_held : assert property (@(posedge clk_i) disable iff (!rst_ni)
        $past(rst_ni) |-> 32'(fifo_count) + 32'(free_q) <= FifoBeats);
    c_void_after_data : cover property (@(posedge clk_i) disable iff (!rst_ni)
        kill_now && free_q != CreditWidth'(FifoBeats));
    c_void_alone : cover property (@(posedge clk_i) disable iff (!rst_ni)
        kill_now && free_q == CreditWidth'(FifoBeats));
`endif
  end

  assign idle_o = &channel_idle && order_count == '0;

`ifndef SYNTHESIS
  a_ar_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      m_ar_valid_o && !m_ar_ready_i
      |=> m_ar_valid_o && $stable(m_ar_addr_o) && $stable(m_ar_len_o));
  a_ar_page : assert property (@(posedge clk_i) disable iff (!rst_ni)
      m_ar_valid_o |-> 32'(m_ar_addr_o[11:0]) + (32'(m_ar_len_o) + 1) * BusBytes <= 4096);
  a_ar_flush : assert property (@(posedge clk_i) disable iff (!rst_ni)
      flush_i && (!m_ar_valid_o || m_ar_ready_i) |=> !m_ar_valid_o);
  a_r_solicited : assert property (@(posedge clk_i) disable iff (!rst_ni)
      r_valid_q |-> order_valid);
`endif

endmodule

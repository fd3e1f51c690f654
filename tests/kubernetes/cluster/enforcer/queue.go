package main

import (
	"encoding/binary"
	"errors"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// What the kernel calls things. Source: Linux, include/uapi/linux/netfilter/nfnetlink_queue.h.
const (
	aboutPacket  = 0 // messages
	aboutVerdict = 1
	aboutConfig  = 2

	configCommand = 1 // attributes of a configuration
	configParams  = 2
	commandBind   = 1
	copyPackets   = 2

	packetHeader  = 1 // attributes of packets and verdicts
	verdictHeader = 2
	packetPayload = 10

	drop   = 0
	accept = 1
)

const enough = 128 // bytes of a packet that are asked for: the headers, with options

// queue is one NFQUEUE of the kernel, bound to this process.
type queue struct {
	conn   *netlink.Conn
	number uint16
}

func openQueue(number uint16) (*queue, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, err
	}
	// A packet that finds the socket full is dropped, and comes again.
	if err := conn.SetOption(netlink.NoENOBUFS, true); err != nil {
		return nil, err
	}
	q := &queue{conn, number}
	bind := netlink.Attribute{Type: configCommand, Data: []byte{commandBind, 0, 0, 0}}
	message, err := q.message(aboutConfig, bind)
	if err != nil {
		return nil, err
	}
	message.Header.Flags |= netlink.Acknowledge
	if _, err := conn.Execute(message); err != nil {
		return nil, err
	}
	// Packets come from here on, perhaps before an answer would: a refusal is read among them.
	params := append(binary.BigEndian.AppendUint32(nil, enough), copyPackets)
	return q, q.send(aboutConfig, netlink.Attribute{Type: configParams, Data: params})
}

// serve gives a verdict on each packet; it ends with what the kernel says against it.
func (q *queue) serve(admits func(packet []byte) bool) error {
	for {
		messages, err := q.conn.Receive()
		if errors.Is(err, unix.ENOENT) {
			continue // a packet that was decided on had gone with its interface
		}
		if err != nil {
			return err
		}
		for _, each := range messages {
			if err := q.decide(each, admits); err != nil {
				return err
			}
		}
	}
}

func (q *queue) decide(message netlink.Message, admits func(packet []byte) bool) error {
	if message.Header.Type != kind(aboutPacket) || len(message.Data) < 4 {
		return nil
	}
	told, err := netlink.NewAttributeDecoder(message.Data[4:])
	if err != nil {
		return err
	}
	var id, payload []byte
	for told.Next() {
		switch told.Type() {
		case packetHeader:
			id = told.Bytes()[:4]
		case packetPayload:
			payload = told.Bytes()
		}
	}
	if err := told.Err(); err != nil {
		return err
	}
	verdict := uint32(drop)
	if admits(payload) {
		verdict = accept
	}
	answer := append(binary.BigEndian.AppendUint32(nil, verdict), id...)
	return q.send(aboutVerdict, netlink.Attribute{Type: verdictHeader, Data: answer})
}

func (q *queue) send(about uint16, attributes ...netlink.Attribute) error {
	message, err := q.message(about, attributes...)
	if err == nil {
		_, err = q.conn.Send(message)
	}
	return err
}

// message is one about this queue: family, version and number come first.
func (q *queue) message(about uint16, attributes ...netlink.Attribute) (netlink.Message, error) {
	body, err := netlink.MarshalAttributes(attributes)
	head := binary.BigEndian.AppendUint16([]byte{unix.AF_UNSPEC, unix.NFNETLINK_V0}, q.number)
	return netlink.Message{
		Header: netlink.Header{Type: kind(about), Flags: netlink.Request},
		Data:   append(head, body...),
	}, err
}

func kind(about uint16) netlink.HeaderType {
	return netlink.HeaderType(unix.NFNL_SUBSYS_QUEUE<<8 | about)
}

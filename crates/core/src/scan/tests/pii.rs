//! Personal data.

use super::{found, rules};

fn alone(rule: &str, value: &str) {
    for around in ["@@", "{\"v\":\"@@\"}", "call @@, then", "(@@)", "x\n@@\ny"] {
        let text = around.replace("@@", value);
        assert_eq!(found(&text), [(rule.to_owned(), value.to_owned())], "{text}");
    }
}

#[test]
fn mail_addresses_are_found() {
    for address in
        ["ann@example.com", "a.b+tag@mail.example.co.uk", "x_y%z@sub-domain.example.org", "UPPER@EXAMPLE.COM", "1@2.io"]
    {
        alone("email", address);
    }
    assert_eq!(found("write to bob@example.com."), [("email".to_owned(), "bob@example.com".to_owned())]);
}

#[test]
fn cards_are_found_plain_and_in_groups() {
    let cards = [
        "4111111111111111",
        "4111 1111 1111 1111",
        "5500-0000-0000-0004",
        "2223003122003222",
        "378282246310005",
        "3782 822463 10005",
        "6011111111111117",
        "3530111333300000",
        "30569309025904",
        "6200000000000005",
    ];
    for card in cards {
        alone("credit_card", card);
    }
    assert_eq!(found("[4111111111111111,1]"), [("credit_card".to_owned(), "4111111111111111".to_owned())]);
    assert_eq!(found("4111 1111 1111 1111 12/27 123"), [("credit_card".to_owned(), "4111 1111 1111 1111".to_owned())]);
}

#[test]
fn numbers_that_fail_a_card_check_are_none() {
    for number in [
        "4111111111111112",
        "4111 1111 1111 1112",
        "9111111111111111",
        "41111111111111111",
        "4111-1111 1111-1111",
        "1234567890123452",
    ] {
        assert_eq!(rules(number), [""; 0], "{number}");
    }
}

#[test]
fn bank_accounts_are_found_plain_and_in_groups() {
    for iban in [
        "DE89370400440532013000",
        "GB82 WEST 1234 5698 7654 32",
        "FR1420041010050500013M02606",
        "NO9386011117947",
        "MT84MALT011000012345MTLCAST001S",
    ] {
        alone("iban", iban);
    }
}

#[test]
fn a_bank_account_with_one_wrong_digit_is_none() {
    for iban in [
        "DE89370400440532013001",
        "GB82 WEST 1234 5698 7654 33",
        "ZZ89370400440532013000",
        "DE8937040044053201300",
        "XDE89370400440532013000",
    ] {
        assert_eq!(rules(iban), [""; 0], "{iban}");
    }
}

#[test]
fn phones_in_international_form_are_found() {
    for phone in ["+4930123456789", "+1 (555) 123-4567", "+44 20 7946 0958", "+33.1.23.45.67.89", "+1-202-555-0143"] {
        alone("phone", phone);
    }
}

#[test]
fn social_security_numbers_are_found_and_those_never_issued_are_not() {
    alone("us_ssn", "123-45-6789");
    for number in [
        "000-12-3456",
        "666-12-3456",
        "912-34-5678",
        "123-00-4567",
        "123-45-0000",
        "123-45-67890",
        "1123-45-6789",
        "123-45-6789-1",
    ] {
        assert_eq!(rules(number), [""; 0], "{number}");
    }
}

#[test]
fn every_number_of_a_long_run_is_found() {
    let text = ["4111111111111111"; 5].join(" ");
    assert_eq!(rules(&text).len(), 5);
    let spread = ["4111111111111111"; 5].join(&" ".repeat(37));
    assert_eq!(rules(&spread).len(), 5);
}

#[test]
fn a_number_is_found_at_every_distance_from_the_start() {
    for distance in 0..40 {
        for (rule, number) in [("credit_card", "30569309025904"), ("iban", "NO9386011117947"), ("us_ssn", "123-45-6789")] {
            let text = format!("{}{number}", "x".repeat(distance) + ":");
            assert_eq!(rules(&text), [rule], "{text}");
        }
    }
}

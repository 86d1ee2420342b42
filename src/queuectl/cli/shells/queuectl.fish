# Completion of queuectl for fish; written by: queuectl completion fish
# Nothing is run but for ids, queues, limits, schedules, tokens, tags and groups, when they are asked for.

# Sets node (aliases resolved), verbs, flags and places of the caller for the words that were typed.
function __queuectl_node --no-scope-shadowing
    set verbs
    set flags
    set places
    switch $argv[1]
@NODES@
    end
end

# Sets kind of the caller to what the value of a flag may be; empty: it takes none.
function __queuectl_value --no-scope-shadowing
    set kind ''
    switch "$argv[1] $argv[2]"
@VALUES@
    end
end

function __queuectl_offer --no-scope-shadowing
    set -l asked
    test -n "$db"; and set asked --db $db
    switch $kind
        case 'set:*'
            printf "$head%s\n" (string split , (string replace -r '^set:' '' $kind))
        case 'list:*'
            set -l before (string match -r '^.*,' -- $part)
            printf "$head$before%s\n" (string split , (string replace -r '^list:' '' $kind))
        case 'ids:*' queues limits schedules tokens tags groups
            for line in (command $program $asked _complete $kind "$part" 2>/dev/null </dev/null)
                echo -- "$head$line"
            end
        case files
            test -z "$head"; and __fish_complete_path "$part"
        case dirs
            test -z "$head"; and __fish_complete_directories "$part" ''
        case command
            if test $place = 0
                __fish_complete_command
            else
                __fish_complete_path "$part"
            end
    end
end

function __queuectl_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l program $typed[1]
    set -l part $current
    set -l head
    set -l node ''
    set -l want ''
    set -l db ''
    set -l dashes ''
    set -l place 0
    set -l kind ''
    set -l verbs
    set -l flags
    set -l places
    __queuectl_node ''
    for word in $typed[2..]
        if test -n "$want"
            test "$want" = --db; and set db $word
            set want ''
        else if test -n "$dashes"
            set place (math $place + 1)
        else if test "$word" = --
            set dashes 1
        else if string match -q -- '--db=*' $word
            set db (string replace -- --db= '' $word)
        else if string match -q -- '-*' $word
            __queuectl_value "$node" $word
            test -n "$kind"; and set want $word
        else if test $place = 0; and string match -q -- $word\t'*' $verbs
            __queuectl_node (string trim "$node $word")
        else
            set place (math $place + 1)
        end
    end
    set kind ''
    if test -n "$want"
        __queuectl_value "$node" $want
    else if test -n "$dashes"
        set kind command
    else if string match -q -- '--*=*' $current
        set -l cut (string split -m 1 = -- $current)
        set head $cut[1]=
        set part $cut[2]
        __queuectl_value "$node" $cut[1]
    else if string match -q -- '-*' $current
        printf '%s\n' $flags
    else
        test $place = 0; and printf '%s\n' $verbs
        set -l number (math $place + 1)
        if test $number -le (count $places)
            set kind (string trim -r -c '*' $places[$number])
        else if string match -q '*\**' "$places[-1]"
            set kind (string trim -r -c '*' $places[-1])
        end
    end
    __queuectl_offer
end

complete -c queuectl -f -a '(__queuectl_complete)'
